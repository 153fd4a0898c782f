"""Every word of the page in English. `{name}` is filled in where it is shown."""

PAGE = {
    "pitch": "See how a Vision Transformer looks at a picture.",
    "models_label": "Model: choose one, or type a part of a name, also of timm's",
    "models_search": "Looking through all of timm's models …",
    "models_none": "No model that can be used here is called that. Enter says why.",
    "models_many": "{count} models are called that. Click one.",
    "models_more": "{count} more are called that: type more of the name.",
    "model_here": "{size}, here",
    "model_download": "{size} to download",
    "model_or_more": "{size} or more",
    "model_patch": "patch {size}",
    "model_registers": "{count} registers",
    "family_embedded": "Embedded",
    "family_file": "File",
    "family_imagenet": "ImageNet",
    "family_distilled": "Distilled",
    "family_deit3": "DeiT-III",
    "family_registers": "Registers",
    "family_maps": "Maps only",
    "embedded_photos": "photos, {count} labels",
    "embedded_digits": "digits",
    "knows": "{count} things: {first} … {last}",
    "knows_all": "Everything this model knows",
    "knows_none": "No labels, for maps only",
    "model_size": "{layers} layers × {heads} heads",
    "model_grid": "{rows} × {cols} patches",
    "model_input": "sees {width} × {height} px",
    "offer": "Use an ImageNet model: {model}, 1,000 labels, {size}, once",
    "offer_here": "Use an ImageNet model: {model}, 1,000 labels, already here",
    "offer_offline": "The model hub cannot be reached from this server now.",
    "link": "Copy link",
    "link_done": "Link copied",
    "link_failed": "The browser does not let this page copy. Copy the address at the top of the window.",
    "link_upload": "Link copied. It opens the model and the settings; your own picture stays here.",
    "step_picture": "Picture",
    "step_answer": "Answer",
    "tabs": "Ways to look at the picture",
    "tab_explore": "Explore",
    "tab_inside": "Inside",
    "tab_trust": "Trust",
    "tab_compare": "Compare",
    "tab_learn": "Learn",
    "title_explore": "Where did the model look?",
    "title_inside": "How does the model come to its answer?",
    "title_trust": "Can I trust this map?",
    "title_compare": "Side by side",
    "title_learn": "Watch it learn to read digits",
    "picture": "Your picture",
    "drop": "Drop a picture anywhere, paste it,\nor click here to choose one",
    "drop_it": "Drop it: it will be looked at",
    "choose": "Choose a file",
    "camera": "Camera",
    "photograph": "Take the photograph",
    "paste": "Paste a picture (or press Ctrl+V anywhere)",
    "remove": "Remove the picture",
    "large": "{name} has {size} MB. Send a picture of at most {most} MB.",
    "unsent": "{name} could not be sent. Try once more.",
    "no_camera": "There is no camera that may be used. Allow it in the browser, or choose a file.",
    "no_paste": "There is no picture in the clipboard. Copy one first, then press Ctrl+V here.",
    "look_sending": "sending …",
    "look_waiting": "waiting, place {place} …",
    "look_running": "looking …",
    "lost": "The server does not answer. See that it is running; this page connects again by itself.",
    "close": "Close",
    "draw": "Draw a digit",
    "erase": "Erase",
    "examples": "Examples",
    "fit": "How the picture meets the model",
    "fit_crop": "Crop",
    "fit_pad": "Pad",
    "fit_stretch": "Stretch",
    "fit_native": "Native",
    "about_crop": "Framed: what the model saw. The dimmed part it never saw.",
    "about_crop_all": "Framed: what the model saw, here the whole picture.",
    "about_pad": "The model saw the whole picture, with plain bars added to make it fit.",
    "about_stretch": "The model saw the whole picture, squeezed into its own shape.",
    "about_native": "The model saw the whole picture in its own shape, on a grid of {rows} × {cols}.",
    "answer_empty": "Choose a picture in step 1: the answer appears here.",
    "answer_maps": "This model has no labels. It is for looking at its maps.",
    "answer_title": "The ten most probable labels",
    "answer_hint": "Why this label? Click it. The − beside another one subtracts it.",
    "answer_why": "Why this label?",
    "answer_less": "subtract this label",
    "search": "Labels you searched for",
    "search_all": "Search all {count} labels",
    "search_none": "No label of this model is called that.",
    "loading": "Loading {name} …",
    "downloading": "Downloading {name}: {percent} % of {size}",
    "kept": "The last result stays on the page.",
    "failed_model": "{name} could not be loaded.",
    "hub": "{name} could not be downloaded: the model hub cannot be reached.",
    "no_model": "There is no model “{name}”.",
    "closest": "The closest names: {names}.",
    "instead": "Use instead:",
    "model_kept": "Still using {kept}.",
    "failed": "Something went wrong in step 1. Try once more, or choose another picture.",
    "script_failed": "This part of the page did not load; reload the page.",
    "failed_answer": "Something went wrong here. Try once more, or choose the picture again in step 1.",
    "gone": "This picture is no longer kept on the server. Choose it again in step 1.",
    "what_title": "What am I looking at?",
    "what": """<p>A Vision Transformer cuts the picture into square patches. In each of its layers, every
patch (and one extra <b>class token</b>, which will carry the answer) looks at all the others and
takes something from them. <b>How much it takes from each is its attention.</b> Several heads do
this side by side, each in its own way.</p>
<p><b>Bright patches</b> are where a head looked. The <b>wall of heads</b> shows all of them at once:
one row a layer, the last layer on top. Click one to enlarge it; point at a patch to see what that
patch looks at.</p>
<p><b>Head rollout</b> follows one head's attention down through all layers to the pixels;
<b>rollout</b> does so for the mean of the heads; <b>raw attention</b> is one layer by itself. A map
shows where information came from. It is not a proof of why the model decided so.</p>
<p><b>Why one label</b> and not another? Click it in step 2. <b>Whether a map is true</b> is put to the
test under Trust.</p>""",
    "take_title": "Take away",
    "take": "The files belong to the view you have set under Explore.",
    "take_npz": "Maps (.npz)",
    "take_json": "Description (.json)",
    "take_gif": "Animation (.gif)",
    "take_webp": "Animation (.webp)",
    "take_html": "Explorer as one page (.html)",
    "take_busy": "Preparing…",
    "take_done": "Saved {name}",
    "take_failed": "This file could not be made. Choose the picture again and try once more.",
    "take_still": "A class map goes through all layers at once: there is nothing to play.",
    "take_code": "The same from the command line:",
    "about_title": "About",
    "about": """<p>The model is written from scratch in one readable file; timm's weights fit into it
without translation. One forward pass is remembered, every later question is answered from it, and
layer, head and patch change in your browser.</p>
<p>Your picture goes to this server and nowhere else. The file you send is removed from its disk after
{minutes} minutes. What is needed to answer more questions (numbers, and a copy of the picture with at most
{megapixels} megapixels) stays in its memory and on its disk until newer pictures take its place. All of it
is removed when the server stops.</p>
<p>Paper: A. Dosovitskiy et al., <cite>An Image is Worth 16x16 Words: Transformers for Image
Recognition at Scale</cite>, ICLR 2021, <a href="https://arxiv.org/abs/2010.11929">arXiv:2010.11929</a>.
Rollout: S. Abnar and W. Zuidema, <cite>Quantifying Attention Flow in Transformers</cite>, ACL 2020,
<a href="https://arxiv.org/abs/2005.00928">arXiv:2005.00928</a>.</p>
<p>Code: Apache-2.0. Example pictures: CC0, public domain, CC BY-SA 3.0, GPL-2 or later and Apache-2.0;
assets/README.md says which is which. Other models bring licences of their own.</p>""",
    "cite": "Cite the paper",
}  # fmt: skip

EXPLORER = {
    "page_title": "where the attention goes",
    "explorer": "Explorer",
    "wall_title": "Wall of heads",
    "empty": "Choose a picture: its attention appears here.",
    "loading": "Fetching the maps",
    "failed": "The maps could not be fetched. Choose the picture again.",
    "map": "Map",
    "head_rollout": "Head rollout",
    "rollout": "Rollout",
    "attention": "Raw attention",
    "head_rollout_hint": "One head, then the mean of all heads in the layers below it",
    "rollout_hint": "All heads of all layers up to this one, together",
    "attention_hint": "One layer on its own, as it came out of the softmax",
    "class": "Class",
    "class_hint": "Why this label? What in the picture speaks for one class",
    "class_none": "This model has no classes",
    "class_absent": "No class map is in this file",
    "class_off": "Class maps go through all layers and heads at once, on a scale of their own",
    "method": "Method",
    "contribution": "Contribution",
    "relevance": "Relevance",
    "gradient_rollout": "Gradient rollout",
    "grad_cam": "Grad-CAM",
    "random": "Random map",
    "part": "Which part of it",
    "part_whole": "Whole",
    "part_special": "Special",
    "part_hint": "This head minus the mean over the heads of its layer",
    "layer_all": "all",
    "query_for": "For",
    "back_class": "Back to all classes",
    "layer": "Layer",
    "layer_of": "{layer} of {layers}",
    "head": "Head",
    "heads_mean": "All heads",
    "heads_max": "Strongest",
    "heads_min": "Weakest",
    "direction": "Direction",
    "from": "From it",
    "to": "To it",
    "to_hint": "Who looks at it?",
    "play": "Play through the layers",
    "pause": "Pause",
    "query_from": "From",
    "query_to": "To",
    "patch": "patch {row}, {col}",
    "token_cls": "class token",
    "token_two": "class and distillation tokens",
    "token_avg": "average of all patches",
    "back": "Back to the {readout}",
    "tip_patch": "Row {row}, column {col}",
    "tip_choose": "Click: look from this patch",
    "tip_back": "Click: back",
    "follow": "Follow the pointer",
    "more": "More settings",
    "residual": "Residual weight",
    "discard": "Discard the smallest",
    "below": "Layers below",
    "below_mean": "mean of heads",
    "below_same": "same head number",
    "opacity": "Opacity",
    "smooth": "Patches",
    "smooth_no": "blocks",
    "smooth_yes": "smooth",
    "colours": "Colours",
    "scale": "Colour scale",
    "scale_shared": "its layer's on the wall",
    "scale_own": "its own",
    "scale_off": "The wall shows another kind of map",
    "reset": "Reset",
    "seen": "as the model saw it ({width} × {height} px)",
    "peek": "Picture only",
    "png": "PNG",
    "png_hint": "Download what you see as a picture",
    "sheet_fit": "Fit: {fit}",
    "sheet_rollout": ", residual weight {residual}, discarded {discard}.",
    "python": "Copy as Python",
    "python_hint": "Copy lines of Python that make this view",
    "copied": "Copied",
    "copy_failed": "Copying is not allowed here",
    "sort": "Sort",
    "sort_layer": "by layer",
    "sort_focus": "by focus",
    "sort_hint": "Focus: the map with the lowest entropy first",
    "points": "{points} pp",
    "legend_layer": "layer {layer}: ",
    "legend_to": "attention paid to it",
    "legend_special": "from the mean of the layer's heads",
    "legend_contribution": "added to log p, white is zero",
    "legend_logit": "in units of the class's score (logit)",
    "legend_share": "share on one patch",
    "legend_random": "random numbers",
    "legend_difference": "difference, white is zero",
    "legend_difference_share": "difference in percentage points, white is zero",
    "wall": "What the wall shows",
    "wall_special": "Special",
    "wall_whole": "Whole",
    "wall_attention": "Raw attention",
    "wall_special_hint": "Head rollout: what sets each head apart from the others of its layer",
    "wall_whole_hint": "Head rollout: all that each head brings",
    "wall_attention_hint": "Each layer on its own, as it came out of the softmax",
    "wall_hint": "Rows are layers, the last on top, each on its own scale; columns are heads.",
    "wall_hint_focus": "The most focused map comes first, then row by row; each layer has its own scale.",
    "wall_hint_numbers": "Numbers: layer · head.",
    "wall_hint_hatched": "Hatched: it looks at hardly any patch.",
    "wall_hint_click": "Click one to open it.",
    "wall_name": "Layer {layer}, head {head}",
    "wall_facts": "attention distance {distance} px · entropy of this map {entropy} bits",
    "wall_stays": "{share} on {tokens}",
    "picture_label": "Picture with the attention map. Arrow keys move from patch to patch, "
    "Enter looks from a patch, Escape goes back.",
    "wall_label": "Wall of heads. Arrow keys move from head to head.",
    "say_head_rollout": "Head {head} of layer {layer}, followed back to the pixels: "
    "brighter patches fed {target} more.",
    "say_head_rollout_same": "Head {head} of every layer up to {layer}, followed back to the "
    "pixels: brighter patches fed {target} more.",
    "say_head_rollout_mean": "All heads of layer {layer} together, followed back to the pixels: "
    "brighter patches fed {target} more.",
    "say_head_rollout_max": "For each patch the strongest head of layer {layer}, followed back "
    "to the pixels: brighter patches fed {target} more.",
    "say_head_rollout_min": "For each patch the weakest head of layer {layer}, followed back to "
    "the pixels: bright patches fed {target} through every head.",
    "say_special": "Head {head} of layer {layer} against the mean of the layer's heads: through it, "
    "red patches fed {target} more, blue ones less.",
    "say_rollout": "Layers 1 to {layer} together: brighter patches fed {target} more.",
    "say_attention": "Head {head} of layer {layer} alone: brighter patches get more of the "
    "attention of {asker}.",
    "say_attention_mean": "All heads of layer {layer}, their mean: brighter patches get more of "
    "the attention of {asker}.",
    "say_attention_max": "The strongest head of layer {layer} for each patch: brighter patches "
    "get more of the attention of {asker}.",
    "say_attention_min": "The weakest head of layer {layer} for each patch: bright patches get "
    "the attention of {asker} in every head.",
    "say_to": "{heads} of layer {layer}: brighter patches pay more attention to {asker}.",
    "say_contribution": "Red patches speak for {label}, blue ones against it, white ones for neither.",
    "say_relevance": "What speaks for {label}: brighter patches raised its score more.",
    "say_gradient_rollout": "Rollout through the attention that speaks for {label}: brighter "
    "patches fed it more.",
    "say_grad_cam": "The last layer's attention, each head weighted by how much it helps {label}: "
    "brighter patches helped more.",
    "say_random": "A random map, for comparison: it knows nothing of {label}. A map worth "
    "trusting does better than this one.",
    "say_difference": "Red: speaks for {label} rather than {minus}. Blue: for {minus} rather than "
    "{label}. White: for both alike.",
    "to_head": "Head {head}",
    "to_mean": "The mean of all heads",
    "to_max": "The strongest head",
    "to_min": "The weakest head",
    "the_answer": "the answer",
    "the_readout": "the {readout}",
    "the_patch": "patch {row}, {col}",
    "stays": "{share} of it stays on {tokens}.",
    "has": "On {tokens}: {share}.",
    "of_cls_token": "the class token",
    "of_dist_token": "the distillation token",
    "of_reg_token": "the register tokens",
    "of_prefix": "tokens that are no patches",
    "lean_note": "Single heads of a patch are not in this file: this is the mean of the heads.",
    "lean_off": "Not offered for a model of this size",
    "findings": "Things to see in this model",
    "finding_edges": "Head {head} of layer {layer} follows edges: it looks where light and dark meet.",
    "finding_smooth": "Head {head} of layer {layer} does the opposite: it looks where nothing changes.",
    "finding_neighbours": "Layer {layer} looks close by: a patch and those around it get more than twice "
    "what chance would give them.",
    "finding_sides": "Camel or dog? What speaks for the one lies mostly on the left, what speaks for "
    "the other mostly on the right.",
}

# A "?" beside a word: the word, and what it means.
QUESTION = "What does this mean: {words}?"
GLOSSARY = {
    "patch": "Patch: A square piece of the picture. The model reads a picture as a list of them.",
    "layer": "Layer: One step of the model: every patch takes something from the others, "
    "and the next layer goes on with the result.",
    "head": "Head: A layer looks in several ways side by side. Each of them is a head, with "
    "an attention of its own.",
    "attention": "Raw attention: How much one token takes from each of the others, in one "
    "layer and one head: shares that add up to 100\u00a0%.",
    "rollout": "Rollout: The attention of all layers, multiplied from the last one down to "
    "the picture: how much of each patch reached the answer.",
    "head_rollout": "Head rollout: Rollout that passes its uppermost layer through one head only.",
    "special": "Special: A head's rollout minus the mean over the heads of its layer: red "
    "where it took more than they did, blue where it took less.",
    "class_token": "Class token: An extra token beside the patches. It takes what it needs "
    "from them, and the answer is read from it.",
    "dist_token": "Distillation token: A second class token, trained to give the answers of "
    "another model.",
    "reg_token": "Register tokens: Extra tokens that stand for no patch: room in which the "
    "model keeps its notes.",
    "average": "Average of all patches: This model has no class token: its answer is read "
    "from the mean of all patches.",
    "class_map": "Class: A map for one label: what in the picture speaks for it, and in red "
    "and blue also what speaks against it.",
    "contribution": "Contribution: What each patch adds to log p of the label (red), or "
    "takes from it (blue), in all layers.",
    "relevance": "Relevance: Attention that raises the label's score, followed through all layers.",
    "gradient_rollout": "Gradient rollout: Rollout that follows only attention that speaks "
    "for the label.",
    "grad_cam": "Grad-CAM: The last layer's attention; heads that help the label count more.",
    "random": "Random map: Chance. A map worth trusting does better.",
    "residual": "Residual: In each layer a token keeps itself and adds what it took from "
    "the others. This is the share that it keeps.",
    "discard": "Discard: The smallest shares in each token's attention are set to zero, so "
    "that they do not add up to a haze.",
    "below": "Layers below: Below the chosen head, rollout takes the mean of the heads. The "
    "same head number is for comparison only: heads are numbered arbitrarily.",
    "entropy": "Entropy: How widely a map is spread: low if a few patches have nearly all "
    "of it, high if all have about the same.",
    "distance": "Attention distance: How far away, on average, the patches are that a patch "
    "looks at.",
    "share": "Share: So much of the whole, 100\u00a0%, lies on this one patch. What lies on "
    "tokens that are no patches is told beside the map.",
    "to": "Attention paid to it: What share of its own attention each patch pays to the "
    "chosen one. These shares do not add up to 100\u00a0%.",
    "points": "Percentage points (pp): The difference of two shares: 3\u00a0% instead of "
    "2\u00a0% is one percentage point more.",
    "logit": "Logit: The label's score, before softmax turns all scores into probabilities.",
    "log_p": "log p: The logarithm of the label's probability: 0 if the model is certain, "
    "further below 0 the less it believes in the label.",
    "difference": "Difference: The map of one label minus that of the other, in the units "
    "of the method.",
    "correlation": "Rank correlation: 1 if two maps put the patches into the same order, 0 "
    "if one says nothing about the other.",
    "score": "Score: Half the area between the curve with the most marked patches kept and the one "
    "with them removed; a random order gets about 0.",
    "band": "Band of chance: A random map scores within it at least 19 times of 20, so a score in it may "
    "be luck.",
    "embedding": "Embedding: A list of learned numbers that stands for something, here for a patch or "
    "for its place.",
    "cosine": "Cosine: How alike the directions of two vectors are: 1 the same, 0 unrelated, "
    "−1 opposite.",
    "component": "Principal component: A direction in which many vectors differ most from one another; "
    "the first few tell most of what there is.",
    "layer_norm": "LayerNorm: Brings the numbers of each token to mean 0 and deviation 1, then to a "
    "learned scale.",
    "qkv": "Query, key and value: What a token looks for, what it offers to be found by, and what it "
    "hands over to those who find it.",
    "softmax": "Softmax: Turns any numbers into positive shares that add up to 1; larger numbers get "
    "more.",
    "temperature": "Temperature: A number that divides the scores before softmax: low makes the shares "
    "sharper, high makes them more alike.",
    "residual_stream": "Residual stream: A token on its way through the layers; each layer adds to it "
    "and replaces nothing.",
    "mlp": "MLP: Two layers of weights with a bend between them, applied to each token by itself.",
    "logit_lens": "Logit lens: Asking the last layer's head what it would answer from a token of an "
    "earlier layer.",
    "epoch": "Epoch: Once through all pictures of the training set.",
    "accuracy": "Accuracy: The share of the pictures that the model names rightly.",
    "loss": "Loss: How wrong the answers are, as one number that training makes smaller: 0 if the model "
    "is certain and right.",
    "label_smoothing": "Label smoothing: Training asks for nearly 100\u00a0% on the right label, with a "
    "little for all others, so that the model does not grow too sure.",
    "confusion": "Confusion matrix: A table that counts, for each true label, which label the model gave.",
    "crop": "Crop: The middle of the picture, as models are tested; the edges are cut off.",
    "pad": "Pad: The whole picture, with plain bars that make it fit.",
    "stretch": "Stretch: The whole picture, pulled into the model's shape.",
    "native": "Native: The whole picture in its own shape, on a grid of another shape with "
    "about as many patches as the model is used to.",
}

# The sentences of a verdict are the library's own (a test holds them together).
TRUST = {
    "empty": "Choose a picture in step 1: then its maps can be put to the test here.",
    "headless": "This model has no classes, so there is no “why this label?” and nothing to test "
    "a map against. Choose a model with labels at the top, for example a DeiT.",
    "lead": "A pretty map may be false. Here each method has to show that it knows something.",
    "failed": "This did not work. Try once more.",
    "waiting": "Waiting for a free place …",
    "running": "{percent} %",
    "cancel": "Cancel",
    "cancelled": "Cancelled.",
    "strip_title": "Seven methods, one label",
    "strip_about": "What each method marks for “{label}”. Click one to see its curves; Explore shows it, too.",
    "strip_rule": "One rule for all colours: dark is the least marked patch of that map, bright its "
    "most marked. Contribution has a sign: red is for the label, blue against it.",
    "method": "Method",
    "method_shown": "Now in Explore",
    "method_raw": "Raw attention",
    "method_rollout": "Rollout",
    "method_gradient_rollout": "Gradient rollout",
    "method_contribution": "Contribution",
    "method_relevance": "Relevance",
    "method_grad_cam": "Grad-CAM",
    "method_random": "Random map",
    "about_shown": "The map that Explore shows now, whatever it is",
    "about_raw": "The last layer's attention, mean of the heads; the same for every label",
    "about_rollout": "Attention through all layers; the same for every label",
    "about_gradient_rollout": "Rollout through the attention that speaks for this label",
    "about_contribution": "What each patch adds to log p of the label, or takes from it, in all layers",
    "about_relevance": "Attention weighted by its gradient, through all layers",
    "about_grad_cam": "The last layer's attention, heads weighted by their gradient",
    "about_random": "Chance: what every other map has to beat",
    "remove": "Remove patches by",
    "remove_tokens": "dropping them",
    "remove_black": "black",
    "remove_blur": "blurring",
    "remove_tokens_hint": "Removed patches are dropped: the model never sees them.",
    "remove_black_hint": "Removed patches are painted black.",
    "remove_blur_hint": "Removed patches are blurred.",
    "check_all": "Check all seven",
    "check_thorough": "Check thoroughly",
    "check_thorough_hint": "20 steps instead of a few, 30 random orders, patches both dropped and "
    "painted over: takes much longer, and the band of chance is narrower",
    "best": "On this picture {best} did best by this test.",
    "best_before": "On this picture {best} did best by this test, before {second}.",
    "best_none": "On this picture no method did better than chance.",
    "best_thorough": "Thorough check: the mean of dropping patches and painting them over.",
    "best_nowhere": "None wins everywhere: another picture may have another best one.",
    "check_one": "Check only the map in Explore",
    "verdict_much_better": "much better than chance",
    "verdict_better": "better than chance",
    "verdict_chance": "no better than chance",
    "verdict_worse": "worse than chance",
    "verdict_empty": "Patches are taken away in the order of the map and in random orders. If the "
    "label falls faster with the map, the map is true. Press “Check all seven”.",
    "sentence_much_better": "Removing what the map marks lowers '{label}' much faster than chance.",
    "sentence_better": "Removing what the map marks lowers '{label}' faster than chance.",
    "sentence_chance": "No better than chance: do not trust this map here.",
    "sentence_worse": "Removing what the map marks lowers '{label}' more slowly than chance: this "
    "map points the wrong way here.",
    "score_is": "Score {score}: half the area between the two curves. Chance alone stays within "
    "±{band}.",
    "axis_x": "patches left",
    "axis_y": "probability of “{label}”",
    "curve_insertion": "only the most marked patches left (high is good)",
    "curve_deletion": "the most marked patches removed (low is good)",
    "curve_band": "{orders} random orders, and their mean",
    "random_title": "Does the map depend on the model?",
    "random_about": "The blocks of the model are made random, one after the other from the top. A "
    "map that stays the same does not show what the model has learnt.",
    "randomise": "Make the blocks random",
    "random_none": "real model",
    "random_some": "{count} random",
    "random_all": "all random",
    "random_real": "the real map",
    "random_same": "rank corr. {correlation}",
    "random_empty": "Not tried yet.",
    "random_passed": "Passed: with random weights the map is another one (rank correlation "
    "{correlation}). It depends on the model.",
    "random_failed": "Failed: with random weights the map stays much the same (rank correlation "
    "{correlation}). It does not show what the model has learnt.",
    "knock_title": "What happens without it?",
    "knock_about": "Switch heads or whole layers off, paint over patches, and watch the answer.",
    "heads_title": "Heads",
    "heads_label": "Heads: rows are layers, the last on top. Arrow keys walk, Enter switches.",
    "heads_hint": "Click a head to switch it off, a number at the left for all of its layer.",
    "head_is_on": "Layer {layer}, head {head}: on",
    "head_is_off": "Layer {layer}, head {head}: off",
    "layer_is_on": "All heads of layer {layer}: on",
    "layer_is_off": "All heads of layer {layer}: off",
    "layer_short": "{layer}",
    "head_change": "Layer {layer}, head {head}: without it “{label}” goes from {before} to {after} "
    "({change} points).",
    "wall": "Which head matters? Try each one",
    "wall_hint": "Blue: without this head “{label}” falls. Red: it rises. Point at a head, or click "
    "to switch it off.",
    "wall_scale": "points of “{label}”, white is no change",
    "paint_title": "Patches",
    "paint_label": "The picture: paint over patches. Arrow keys move from patch to patch, Enter "
    "paints.",
    "paint_hint": "Draw over the picture to hide patches; draw again to bring them back.",
    "paint_at": "Row {row}, column {col}",
    "painted": "{count} of {total} patches painted over",
    "fill": "Paint with",
    "fill_black": "black",
    "fill_blur": "blur",
    "restore": "Restore all",
    "changes_title": "The answer now",
    "without_nothing": "Nothing is switched off: this is the untouched answer.",
    "without_is": "Off: heads {heads}, layers {layers}, patches {patches}. Changes in points.",
    "fell_out": "Fell out of the ten: {labels}",
}

# The tab Inside. Letters are the paper's: N tokens of D numbers, h heads of d numbers, L layers.
INSIDE = {
    "empty": "Choose a picture in step 1: its way through the model appears here.",
    "waiting": "The picture is on its way …",
    "no_labels": "This model has no labels, so there is no head to ask and no answer to take apart. "
    "Steps 1 to 8 are here; for 9 and 10 choose a model with labels at the top.",
    "pages": "The walk, or the model alone",
    "page_walk": "Ten steps",
    "page_anatomy": "Anatomy",
    "lead_walk": "From your picture to the answer in ten steps. Every number here is one that the model "
    "really computed.",
    "lead_anatomy": "What the model has learnt, whatever the picture.",
    "rail": "The ten steps",
    "group_in": "picture to tokens",
    "group_layer": "in every layer, {layers} times",
    "group_out": "to the answer",
    "shape": "Shape",
    "becomes": "becomes",
    "back": "← Back",
    "next": "Next →",
    "keys": "The keys ← and → walk, too",
    "guess": "Guess first:",
    "right": "Right.",
    "wrong": "Not quite.",
    "just_show": "Just show me",
    "secret": "Guess below first: this gives the answer away.",
    "fold_idea": "Idea",
    "fold_maths": "Maths",
    "fold_code": "Code",
    "source": "{file}, lines {first} to {last}",
    "chosen": "Token",
    "chosen_patch": "Patch",
    "to_class_token": "class token",
    "label": "Label",
    "layer": "Layer",
    "layer_less": "One layer down",
    "layer_more": "One layer up",
    "head": "Head",
    "head_less": "The head before",
    "head_more": "The next head",
    "of": "{k} of {count}",
    "head_k": "Head {k}",
    "patch_at": "patch {row}, {col}",
    "cls_token": "class token",
    "dist_token": "distillation token",
    "reg_token": "register",
    "grid_keys": "Arrow keys move from patch to patch, Enter chooses one.",
    "strip_keys": "Arrow keys move from number to number.",
    "cell_keys": "Arrow keys move from cell to cell.",
    "zoom_keys": "One patch. Arrow keys move from pixel to pixel.",
    "ledger_keys": "The ledger: rows are layers, columns are heads. Arrow keys move from cell to cell.",
    "click_patch": "Click a patch to choose it; it stays chosen in all steps and in Explore.",
    "sum_of": "sum of {count} products",
    "bias": "bias",
    "length": "length",
    "share": "share",
    # 1
    "name_pixels": "Pixels",
    "title_pixels": "Pixels become numbers around zero",
    "say_pixels": "The crop of {H} × {W} pixels becomes {C} planes of numbers with the mean colour "
    "taken away: a network learns best from numbers around zero.",
    "bytes": "bytes",
    "crop": "What the model sees",
    "one_patch": "One patch: {C} × {p} × {q} numbers",
    "patch_colour": "in colour",
    "red": "red",
    "green": "green",
    "blue": "blue",
    "grey": "grey",
    "point_pixel": "Point at a pixel of the patch.",
    "channel": "channel",
    "byte": "byte",
    "normalised": "normalised",
    "black": "black",
    "white": "white",
    "guess_pixels": "Why is black not 0?",
    "guess_pixels_a": "Because black lies below the mean colour, and the mean was taken away",
    "guess_pixels_b": "Because black pixels are lost when the picture is resized",
    "guess_pixels_c": "Because a network cannot multiply with 0",
    "guess_pixels_answer": "Zero is the mean colour of the training pictures (bytes {mean}). So black "
    "becomes {black}, and white {white}.",
    "idea_pixels": "A picture is a table of bytes from 0 to 255. Weights are small numbers of both signs, "
    "so the bytes are first divided by 255, then the mean of the training pictures is subtracted and the "
    "result divided by their spread, channel by channel. The same two numbers are used for every picture, "
    "so nothing of the picture is lost.",
    "maths_pixels": "v is a byte; μ and σ are mean and standard deviation of the channel over the training "
    "pictures. There are {C} channels, so {C} pairs of them.",
    # 2
    "name_patches": "Patches",
    "title_patches": "Patches become vectors",
    "say_patches": "The picture is cut into {n} patches, and each patch of {C} × {p} × {q} = {pixels} "
    "numbers is projected to {D}: a transformer works on a list of vectors, not on a picture.",
    "cut": "Cut into patches",
    "two_ways": "The {D} numbers of this patch, made in two ways",
    "by_convolution": "convolution",
    "by_unfold": "unfold + linear",
    "output_number": "Number {k} of the patch: by convolution",
    "and_unfold": "and by unfold + linear",
    "largest_difference": "Largest difference between the two, over all {n} patches:",
    "opened": "Number {k}, opened (click another one in a strip)",
    "pixel_values": "pixels",
    "kernel": "kernel",
    "products": "products",
    "point_cell": "Point at a cell to see its two factors.",
    "filters": "What the kernels look for",
    "filters_about": "The {D} kernels as principal components: the directions in which they differ most, "
    "each with its share of the variance. These are not single filters.",
    "guess_patches": "A convolution, and cutting out each patch and multiplying it with a matrix: how far "
    "apart are the results?",
    "guess_patches_a": "A few percent apart",
    "guess_patches_b": "Equal, but for rounding",
    "guess_patches_c": "Entirely different",
    "guess_patches_answer": "The largest difference over all {n} × {D} numbers is {difference}, which is "
    "rounding. A convolution whose stride is its size meets every patch exactly once: the same products, "
    "the same sums.",
    "idea_patches": "A word is a token; here a patch is one. Each of the {D} numbers answers one question "
    "about the patch: how much is there of a certain edge, colour or texture? The question is a kernel of "
    "the same size as the patch; the answer is the sum of kernel times patch. All patches are asked the "
    "same {D} questions.",
    "maths_patches": "x_i is patch i as {pixels} numbers, E a matrix of {pixels} × {D}, b the bias. The "
    "second line is one number of the result: over channels c and the pixels u, v of the patch.",
    # 3
    "name_embedding": "Tokens",
    "title_embedding": "A class token and positions",
    "say_embedding": "Tokens that belong to no patch come first (here {P}), to collect the answer, and every "
    "token gets a learned position added, because attention by itself knows no order.",
    "say_embedding_none": "Each patch gets a learned position added, because attention by itself knows no "
    "order. This model has no class token: in the end the mean of all patches answers.",
    "lengths": "Length of the vectors",
    "length_patch": "patch",
    "length_position": "position",
    "length_sum": "sum",
    "cosines": "How alike are two positions?",
    "centred": "mean of all positions removed",
    "cosines_about": "Point at a patch: red patches have a position like its own, blue ones the opposite.",
    "cosines_click": "Click a patch: red patches have a position like its own, blue ones the opposite.",
    "cosine_of": "Cosine of {a} and {b}:",
    "shuffle_logits": "as it is",
    "shuffle_with_positions": "shuffled, each patch with its position",
    "shuffle_without_positions": "shuffled, the positions stay",
    "shuffle_features": "This model has no labels; with their positions, its features differ by "
    "{difference} at most.",
    "guess_embedding": "All patches are shuffled, but each keeps its own position vector. What does the "
    "model answer?",
    "guess_embedding_a": "Nonsense: the picture is destroyed",
    "guess_embedding_b": "The same label, but less surely",
    "guess_embedding_c": "Exactly the same",
    "guess_embedding_answer": "The same, up to {difference}, which is rounding: attention looks at all "
    "tokens at once, in no order. The order is in the positions alone; without them it is another picture.",
    "idea_embedding": "Attention treats its tokens as a bag: swap two, and nothing changes. So where a "
    "patch was must be written into the patch itself. The model learns a vector for every place and adds "
    "it. Nobody told it that the places form a grid: that neighbours get similar vectors, it found out by "
    "itself.",
    "maths_embedding": "E_pos has one row for each of the {N} tokens ({P} extra, {n} patches) and {D} "
    "columns. It is learned, and the same for every picture.",
    # 4
    "name_norm": "LayerNorm",
    "title_norm": "LayerNorm: every token on the same scale",
    "say_norm": "Before attention, each token is brought to mean 0 and deviation 1 over its {D} numbers, "
    "so that only its direction counts and not its length.",
    "one_token": "The chosen token, number by number",
    "norm_before": "before",
    "norm_standard": "mean 0, deviation 1",
    "norm_after": "× weight + bias",
    "before": "Before",
    "then": "Then",
    "mean": "mean",
    "deviation": "deviation",
    "point_number": "Point at a number to see how it is made.",
    "length_now": "Length of every token here",
    "lengths_layers": "Lengths over the layers",
    "after_layer": "after layer",
    "legend_chosen": "{token}",
    "legend_median": "median",
    "legend_range": "shortest to longest",
    "legend_long": "unusually long",
    "marked": "{count} times a token is longer than {times} times the median of its layer: marked in red. "
    "Large models park information in such tokens.",
    "marked_none": "No token is longer than {times} times the median of its layer.",
    "guess_norm": "One token is ten times as long as its neighbours. How long is it after LayerNorm, before "
    "weight and bias?",
    "guess_norm_a": "Ten times as long",
    "guess_norm_b": "As long as all the others",
    "guess_norm_c": "Zero",
    "guess_norm_answer": "Each token is divided by its own deviation. Here lengths go from {low} to {high} "
    "before, and all are √D = {root} after.",
    "idea_norm": "Layer after layer adds to a token, and tokens grow at different speeds. LayerNorm lets "
    "attention and MLP see all of them on one scale. The token itself is not changed: the norm stands on "
    "the branch, the stream goes on as it was.",
    "maths_norm": "μ and σ are taken over the {D} numbers of one token; γ and β are learned, {D} numbers "
    "each. ε keeps σ from being 0.",
    # 5
    "name_qkv": "q, k, v",
    "title_qkv": "Queries, keys and values",
    "say_qkv": "Every token asks a question (q), offers a key (k) and has something to hand over (v), "
    "{d} numbers each in every head; where query and key agree, the score is high.",
    "scores": "Score of every token",
    "strip_q": "Query of the chosen token.",
    "strip_k": "Key of the token under the pointer.",
    "strip_product": "Their products.",
    "strip_v": "Value of the chosen token.",
    "point_token": "Point at a patch: its key against the chosen token's query. Click to choose.",
    "point_product": "Point at a number to see its two factors.",
    "score_of": "is the score of {token}",
    "guess_qkv": "Why is the sum divided by √d?",
    "guess_qkv_a": "So that scores do not grow with the number of products",
    "guess_qkv_b": "So that the scores add up to 1",
    "guess_qkv_c": "So that it is faster",
    "guess_qkv_answer": "A sum of {d} products of numbers of size 1 is of size √{d} = {root}. Undivided, the "
    "softmax would give nearly everything to one token, and learning would stop.",
    "idea_qkv": "Think of a library: the query is what you look for, the keys are the words on the backs of "
    "the books, the values are what stands in them. Three matrices make them out of the same token. Every "
    "head has its own matrices, so every head can look for something else.",
    "maths_qkv": "Each head has d = D / h = {D} / {h} = {d} numbers for q, k and v. s_ij is the score of "
    "token j for token i: {N} × {N} scores in each of {h} heads.",
    # 6
    "name_softmax": "Softmax",
    "title_softmax": "Softmax: scores become shares",
    "say_softmax": "The scores of one token become {N} shares that add up to 1: this is its attention, and "
    "it is what the maps in Explore show.",
    "shares": "Attention of the chosen token",
    "token": "token",
    "score": "score",
    "exponential": "exponential",
    "all_tokens": "all {count} tokens",
    "entropy": "Entropy",
    "bits_of": "bits, of {most} at most",
    "temperature": "temperature",
    "plus_ten": "add 10 to every score",
    "point_share": "Point at a patch to find it in the table.",
    "guess_softmax": "What if every score grows by 10?",
    "guess_softmax_a": "All shares grow",
    "guess_softmax_b": "Nothing changes",
    "guess_softmax_c": "The largest takes everything",
    "guess_softmax_answer": "Each exponential grows by the same factor e¹⁰ = {factor}, and so does their "
    "sum. Only differences between scores count. Try it with the box above.",
    "idea_softmax": "Exponentials make everything positive and stretch differences: one point more is 2.7 "
    "times the weight. Dividing by the sum makes shares. Temperature divides the scores first: cold, and the "
    "winner takes all; hot, and everybody gets the same. The model was trained at temperature 1.",
    "maths_softmax": "Row i of A is the attention of token i. In the table the largest score is subtracted "
    "before exp, as in the code that runs: the shares are the same, and nothing overflows. H is the entropy: "
    "0 bits if one token gets all, log₂ {N} if all get the same.",
    # 7
    "name_heads": "Heads",
    "title_heads": "A weighted sum, in every head",
    "say_heads": "Each token takes from every other its value, as much as the attention says; then all "
    "{h} heads write what they found into the token.",
    "added_so_far": "Added so far",
    "added": "tokens added",
    "added_of": "{k} of {count} tokens,",
    "of_attention": "of the attention, length",
    "of_length": "of",
    "running_sum": "A v so far",
    "own_value": "value of one token",
    "value_length": "a value of length",
    "what_heads_write": "What each head writes",
    "what_heads_write_about": "The map is where a head looks; the bar is the length of what it adds to the "
    "token, A v W_o.",
    "brightest": "brightest",
    "writes": "writes",
    "together": "All heads together add a vector of length",
    "together_about": "(with the projection's bias, {bias}): parts may point against each other.",
    "guess_heads": "Does the head with the brightest patch add most to the token?",
    "guess_heads_a": "Yes, always",
    "guess_heads_b": "Not necessarily",
    "guess_heads_c": "No, never",
    "guess_heads_same": "Here it happens to: head {bright} has the brightest patch ({peak}) and writes most "
    "({length}). But bright is not the same as important: what is written depends on the values, too. Try "
    "another layer.",
    "guess_heads_other": "Here head {bright} has the brightest patch ({peak}), but writes only {own}; head "
    "{long} writes most, {length}. Bright is not the same as important: what is written depends on the "
    "values and on W_o, too.",
    "idea_heads": "Attention only says from where. What is moved are the values: slide through the tokens, "
    "largest share first, and watch the sum grow. Often a few tokens make nearly all of it. A head may look "
    "at something with all its attention and find a value of almost nothing there.",
    "maths_heads": "The inner sum is what head h saw: {d} numbers. W_o has {d} rows of {D} numbers for each "
    "head, so each head writes into all {D} numbers of the token.",
    # 8
    "name_mlp": "MLP",
    "title_mlp": "Residual stream and MLP",
    "say_mlp": "What attention and the MLP find is added to the token, never put in its place: the token is "
    "a stream that runs through all {L} layers.",
    "vectors": "The token as an arrow, and what is added",
    "part_stream": "stream",
    "part_attention": "attention's part",
    "part_mlp": "MLP's part",
    "cosine_stream_attention": "cosine of stream and attention's part",
    "cosine_both_mlp": "cosine of stream + attention and MLP's part",
    "cosine_attention_mlp": "cosine of attention's and MLP's part",
    "over_layers": "Lengths in all layers",
    "units": "The MLP's units",
    "active": "Above zero, of {count} units",
    "units_about": "The five units that add most to the chosen token, each with its activation over the "
    "patches: what does it look for?",
    "unit": "Unit {unit}",
    "activation": "activation",
    "guess_mlp": "How long is what this layer adds, compared with what was there before?",
    "guess_mlp_a": "Shorter",
    "guess_mlp_b": "About as long",
    "guess_mlp_c": "Longer",
    "guess_mlp_answer": "In layer {layer} attention and MLP together add {added} to a stream of {stream}: "
    "{ratio} times as much.",
    "idea_mlp": "Attention moves information between tokens; the MLP thinks about each token alone. Each of "
    "its {units} units asks whether a pattern is there, and if so, writes something. Because everything is "
    "added, later layers can still read what earlier ones wrote, and a layer that has nothing to say can "
    "stay silent.",
    "maths_mlp": "W₁ has {D} × {units} weights, W₂ {units} × {D}. The angles in the drawing are the true "
    "angles between neighbouring arrows; in {D} dimensions there is room for all of them.",
    # 9
    "name_layers": "Layers",
    "title_layers": "Layer by layer",
    "say_layers": "Steps 4 to 8 are repeated {L} times. What would the head answer after each layer, and who "
    "brought how much to the final answer?",
    "caution": "Read with care: only the last layer was trained to answer. Earlier ones are asked here with "
    "a head that was never made for them.",
    "lens": "Rank of the final answer",
    "first_after": "What would come first",
    "before_all": "before",
    "after": "layer {layer}",
    "rank": "rank",
    "rank_is": "{label}: rank {rank}, {share}",
    "legend_answer": "“{label}”",
    "legend_random": "random weights, their own answer “{label}”",
    "ledger": "The ledger of “{label}”: who added what to its logit",
    "ledger_about": "Rows are layers, columns heads, then the bias and the MLP. Red adds, blue takes away. "
    "The last norm's deviation is fixed at its value in this pass; then the logit is a sum, exactly.",
    "bias_short": "b",
    "projection_bias": "the projection's bias",
    "point_ledger": "Point at a cell.",
    "adds": "Layer {layer}, {part}: {value} to the logit of “{label}”",
    "embedding": "embedding",
    "all_heads": "heads",
    "biases": "biases",
    "constant": "constant",
    "is_logit": "The logit of “{label}”:",
    "guess_layers": "Would a model with random weights seem to find its own answer layer by layer, too?",
    "guess_layers_a": "Yes, its curve ends at rank 1, too",
    "guess_layers_b": "No, its curve stays flat",
    "guess_layers_answer": "The dashed curve has random blocks. Its own answer, “{answer}”, starts at rank "
    "{first}, is at {middle} half way, and at 1 in the end. That a curve climbs to 1 proves nothing: every curve "
    "ends there, with any weights.",
    "idea_layers": "Because every layer only adds, the stream can be read at any time with the same head: "
    "that is the logit lens. And because the answer is read from a sum, each part of the sum can be asked "
    "how much it brought: that is the ledger. Parts can cancel; a large entry is not a cause by itself. "
    "Trust asks what happens without it.",
    "maths_layers": "o is what a head adds to the token that answers, m what an MLP adds, σ the deviation "
    "of the last norm in this pass, w_c the head's weights of label c. There are {L} × {h} heads and {L} "
    "MLPs.",
    # 10
    "name_answer": "Answer",
    "title_answer": "The answer, and back",
    "say_answer": "The last token is multiplied with one row of weights for each of the {classes} labels; "
    "softmax makes probabilities of the sums. Then the way back: which patches brought them?",
    "answer_products": "The products of the features and the label's weights.",
    "logit_of": "The logit of “{label}”: {count} products",
    "point_feature": "Point at a number to see its two factors.",
    "the_logit": "is the logit of “{label}”",
    "to_probabilities": "From logits to probabilities",
    "logit": "logit",
    "probability": "probability",
    "the_rest": "The other {count} labels share {share}.",
    "all_one": "Together they are 100 %.",
    "class_map": "And back: the class map",
    "point_map": "Point at a patch: how much it adds to log p of “{label}”.",
    "patch_adds": "{patch}: {value} to log p",
    "and_back": "The same steps, walked backwards, give each patch a share of log p: red patches speak for "
    "the label, blue ones against it. Such a map may be false; it has to pass a test.",
    "to_trust": "Put it to the test",
    "to_explore": "Open it in Explore",
    "guess_answer": "The map is bright on a patch. Is that proof that the model needs this patch?",
    "guess_answer_a": "Yes, bright means needed",
    "guess_answer_b": "Yes, if the picture looks convincing",
    "guess_answer_c": "No, one has to take the patch away and look",
    "guess_answer_answer": "A map is a claim. Take the marked patches away: if the label falls no faster "
    "than with random patches, the map is worth nothing here. Trust does just that.",
    "idea_answer": "The head knows one direction for each label. The logit is how far the token points that "
    "way, and the softmax compares all labels. Nothing here says “I do not know”: the probabilities add up "
    "to 1, even for a picture of something the model has never seen.",
    "maths_answer": "y is the token that answers, after the last norm: {D} numbers. W has one column for "
    "each of the {classes} labels.",
    # Anatomy
    "title_anatomy": "Anatomy of the model",
    "say_anatomy": "What {model} is like, from its weights and from how it looks at the example pictures.",
    "mean_coming": "Mean over {count} of {all} example pictures so far …",
    "mean_of": "Attention is the mean over the {all} example pictures, not over a data set.",
    "mean_all_heads": "Mean of all heads",
    "uniform": "uniform attention",
    "bits": "bits",
    "head_value": "Layer {layer}, head {head}: {value} {unit}",
    "anatomy_distance": "How far does each head look?",
    "anatomy_distance_about": "One dot a head: the mean distance between a patch and the patches it looks "
    "at. On the dashed line a head would look everywhere alike.",
    "axis_distance": "pixels",
    "anatomy_entropy": "How widely does each head look?",
    "anatomy_entropy_about": "One dot a head: the mean entropy of its attention over the patches. Low is a "
    "narrow look.",
    "axis_entropy": "bits",
    "anatomy_positions": "Positions",
    "anatomy_positions_about": "Each small map is one patch: how alike its position is to all others. Red "
    "is alike, blue opposite.",
    "anatomy_filters": "Filters",
    "anatomy_filters_about": "Principal components of the patch embedding, with their share of the variance. "
    "These are not single filters.",
}

LABELS = {}  # labels are in English ...
ERRORS = {}  # ... and so is what the library says

# The tab Compare, beside what the explorer says: `BORROWED` of `ui/compare.py`.
COMPARE = {
    "empty": "Choose a picture in step 1: then another picture, or another model, can stand beside it here.",
    "mode": "Beside it",
    "mode_pictures": "another picture",
    "mode_models": "another model",
    "examples": "Examples to stand beside the picture",
    "own": "Your own …",
    "own_other": "Another one of your own …",
    "upload_failed": "The picture could not be sent. It may be too large; try a smaller one.",
    "waiting": "Looking at it …",
    "failed": "The second one could not be fetched. Choose it again.",
    "choose": "Choose a second model above.",
    "first": "first",
    "second": "second",
    "first_picture": "First picture",
    "second_picture": "Second picture",
    "answer": "The five most probable labels",
    "no_labels": "No labels: for maps only",
    "layer_pair": "{layer} of {layers} · {other} of {others}",
    "layer_in": "layer {layer} of {layers}",
    "back_patch": "Back from patch {row}, {col}",
    "png_hint": "Download both and their difference as a picture",
    "difference": "Difference",
    "difference_grid": "first minus second, on {rows} × {cols} cells",
    "difference_label": "The difference of the two maps. Its numbers are told beside the two pictures.",
    "difference_about": "Red: more in “{first}”. Blue: more in “{second}”.",
    "of_all": "of each map's own total",
    "dim": "Dim: only one of them saw it.",
    "correlation": "Rank correlation",
    "correlation_hint": "How alike the two rank the patches: 1 the same order, 0 unrelated, −1 reversed",
    "heads_note": "Heads are numbered arbitrarily: the same number in two models says nothing.",
    "not_seen": "This patch lies outside of what “{second}” saw: there it is the map of the answer.",
    "not_seen_first": "This patch lies outside of what the first one saw. Choose another one.",
    "no_label": "“{second}” has no label of this name: there it is the map of its own answer.",
    "labels": "The labels they disagree on",
    "label": "Label",
    "why": "Why this label? Show what speaks for it on both sides",
    "not_a_label": "not one of its labels",
    "agree": "Both say {first}.",
    "disagree": "{first} against {second}.",
    "strangers": "{first} and {second}: neither of the two answers is a label of the other model.",
}

# The tab "Learn".
LEARN = {
    "lead": "This is the model of digits, kept at {count} moments while it learnt, from random weights "
    "to the finished model. Draw a digit and move through its training. The picture in step 1 "
    "plays no part here.",
    "waiting": "Fetching the training …",
    "pad_title": "Your digit",
    "pad_label": "Pad: draw a digit with the mouse or a finger, or choose an example below.",
    "erase": "Erase",
    "examples": "Example digits",
    "answer_title": "What it reads at this moment",
    "answer_empty": "Draw a digit, or choose an example.",
    "settled": "From step {step} on it reads {digit}, as it does in the end.",
    "settled_first": "It reads {digit} from the start to the end; before training that is luck.",
    "slider": "Training time",
    "play": "Play",
    "pause": "Pause",
    "before": "Before the first step: random weights",
    "moment": "Step {step} of {steps}",
    "seen": "{pictures} digits seen · epoch {epoch} · {accuracy} % of the test digits right",
    "curves_title": "Accuracy and loss over the training",
    "curves_axis": "Steps from left to right: close together at the start, where most is learnt.",
    "accuracy": "Accuracy",
    "accuracy_label": "Accuracy on the test digits over the training, {accuracy} % in the end",
    "loss": "Loss",
    "loss_label": "Loss over the training, {loss} on the test digits in the end",
    "curve_test": "test digits",
    "curve_train": "training digits: shifted and turned, and with label smoothing it cannot reach 0",
    "heads_title": "Where its heads look",
    "heads_about": "Your digit in every head: rows are layers, the last on top.",
    "heads_label": "Maps of {layers} layers with {heads} heads each over the digit: {map}",
    "head_name": "Layer {layer}, head {head}",
    "heads_legend": "share on one patch, the same at all moments",
    "map": "Map",
    "map_head_rollout": "Head rollout",
    "map_attention": "Raw attention",
    "positions_title": "What it knows about places",
    "positions_about": "One square a patch: how alike its position is to that of every patch.",
    "positions_label": "For each patch, the cosine of its position with the positions of all patches",
    "positions_legend": "cosine",
    "confusion_title": "What it confuses: {count} test digits",
    "confusion_label": "Confusion matrix: rows are true digits, columns are answers",
    "confusion_counts": "{right} right, {wrong} wrong.",
    "confusion_about": "Rows: the digit that it is. Columns: what the model reads.",
    "repeat_title": "Repeat it",
    "repeat_about": "This command trains the same model; MNIST is downloaded. --snapshots works with "
    "pictures of your own, too.",
    "command_label": "Command",
    "code_about": "The code that ran, from the source files of this project:",
    "code_where": "{file}, lines {first} to {last}",
    "code_loaders": "Loaders",
    "code_loaders_about": "pictures become batches",
    "code_epoch": "One epoch",
    "code_epoch_about": "forward, loss, backward, step",
    "code_evaluate": "Evaluate",
    "code_evaluate_about": "how many answers are right",
    "code_loop": "The loop",
    "code_loop_about": "epoch after epoch, tested and saved",
}

EXAMPLES = {
    "koala": "Koala",
    "camel": "Camel",
    "goldfish": "Goldfish",
    "espresso": "Espresso",
    "lemon": "Lemon",
    "penguin": "King penguin",
    "shepherd": "German shepherd",
    "camel-and-shepherd": "Camel and German shepherd",
    "digit-two": "Two",
    "digit-three": "Three",
    "digit-four": "Four",
    "digit-five": "Five",
    "digit-seven": "Seven",
    "digit-eight": "Eight",
}
