"""Every word on the page, in English and in Korean."""

LANGUAGES = {"en": "EN", "ko": "KO"}

ENGLISH = {
    "pitch": "See how a Vision Transformer looks at a picture.",
    "model": "Model: choose one, or type the name of any timm ViT",
    "language": "Language",
    "link": "Copy link",
    "link_done": "Link copied",
    "link_upload": "Link copied. It opens the model and the settings; your own picture stays here.",
    "step_picture": "Picture",
    "step_answer": "Answer",
    "step_explorer": "Where did each head look?",
    "step_trust": "Can I trust this map?",
    "picture": "Your picture",
    "drop": "Drop a picture here\nor click to choose one",
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
    "explorer_empty": "Choose a picture in step 1.",
    "loading": "Loading {name} (the first time it is downloaded)",
    "kept": "The last result stays on the page.",
    "failed_model": "{name} could not be loaded.",
    "hub": "{name} could not be downloaded: the model hub cannot be reached.",
    "model_kept": "Still using {kept}.",
    "failed": "Something went wrong in step 1. Try once more, or choose another picture.",
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
test in step 4.</p>""",
    "take_title": "Take away",
    "take": "The files belong to the view you have set in step 3.",
    "take_npz": "Maps (.npz)",
    "take_json": "Description (.json)",
    "take_gif": "Animation (.gif)",
    "take_webp": "Animation (.webp)",
    "take_html": "Explorer as one page (.html)",
    "take_busy": "Preparing…",
    "take_done": "Saved {name}",
    "take_failed": "This file could not be made. Choose the picture again and try once more.",
    "take_still": "A class map goes through all layers at once: there is nothing to play.",
    "take_code": "The same from Python or the command line:",
    "about_title": "About",
    "about": """<p>The model is written from scratch in one readable file; timm's weights fit into it
without translation. One forward pass is remembered, every later question is answered from it, and
layer, head and patch change in your browser. Your picture stays between you and this server, in
memory, until newer ones take its place.</p>
<p>Paper: A. Dosovitskiy et al., <cite>An Image is Worth 16x16 Words: Transformers for Image
Recognition at Scale</cite>, ICLR 2021, <a href="https://arxiv.org/abs/2010.11929">arXiv:2010.11929</a>.
Rollout: S. Abnar and W. Zuidema, <cite>Quantifying Attention Flow in Transformers</cite>, ACL 2020,
<a href="https://arxiv.org/abs/2005.00928">arXiv:2005.00928</a>.</p>
<p>Code: Apache-2.0. Example pictures: CC0, public domain and Apache-2.0, listed in
assets/README.md. Other models bring licences of their own.</p>""",
    "cite": "Cite the paper",
}  # fmt: skip

KOREAN = {
    "pitch": "비전 트랜스포머가 사진을 어떻게 보는지 직접 확인해 보세요.",
    "model": "모델: 고르거나 timm ViT 이름을 입력하세요",
    "language": "언어",
    "link": "링크 복사",
    "link_done": "링크를 복사했습니다",
    "link_upload": "링크를 복사했습니다. 모델과 설정만 담기며, 올린 사진은 담기지 않습니다.",
    "step_picture": "사진",
    "step_answer": "답",
    "step_explorer": "각 헤드는 어디를 보았을까요?",
    "step_trust": "이 맵을 믿어도 될까요?",
    "picture": "내 사진",
    "drop": "여기에 사진을 끌어다 놓거나\n눌러서 고르세요",
    "draw": "숫자를 그려 보세요",
    "erase": "지우기",
    "examples": "예시",
    "fit": "사진을 모델에 맞추는 방법",
    "fit_crop": "자르기",
    "fit_pad": "여백",
    "fit_stretch": "늘이기",
    "fit_native": "원래 비율",
    "about_crop": "틀 안은 모델이 본 부분이고, 어두운 부분은 모델이 보지 못했습니다.",
    "about_crop_all": "틀 안은 모델이 본 부분입니다. 여기서는 사진 전체입니다.",
    "about_pad": "모델은 여백을 더한 사진 전체를 보았습니다.",
    "about_stretch": "모델은 자기 모양에 맞게 눌린 사진 전체를 보았습니다.",
    "about_native": "모델은 원래 비율의 사진 전체를 {rows} × {cols} 격자로 보았습니다.",
    "answer_empty": "1단계에서 사진을 고르면 여기에 답이 나타납니다.",
    "answer_maps": "이 모델에는 레이블이 없습니다. 어텐션 맵을 보기 위한 모델입니다.",
    "answer_title": "가장 가능성이 높은 레이블 열 개",
    "answer_hint": "왜 이 레이블일까요? 눌러 보세요. 다른 레이블 옆의 −를 누르면 그만큼 뺍니다.",
    "answer_why": "왜 이 레이블일까요?",
    "answer_less": "이 레이블 빼기",
    "search": "검색한 레이블",
    "search_all": "레이블 {count}개에서 검색",
    "search_none": "그런 이름의 레이블이 이 모델에는 없습니다.",
    "explorer_empty": "1단계에서 사진을 고르세요.",
    "loading": "{name} 불러오는 중 (처음에는 내려받습니다)",
    "kept": "이전 결과는 그대로 남아 있습니다.",
    "failed_model": "{name} 모델을 불러오지 못했습니다.",
    "hub": "모델 허브에 연결할 수 없어 {name} 모델을 내려받지 못했습니다.",
    "model_kept": "{kept} 모델을 계속 씁니다.",
    "failed": "1단계에서 문제가 생겼습니다. 다시 시도하거나 다른 사진을 골라 주세요.",
    "failed_answer": "문제가 생겼습니다. 다시 시도하거나 1단계에서 사진을 다시 골라 주세요.",
    "gone": "이 사진은 서버에 더 이상 없습니다. 1단계에서 다시 골라 주세요.",
    "what_title": "지금 무엇을 보고 있나요?",
    "what": """<p>비전 트랜스포머는 사진을 정사각형 패치로 자릅니다. 층마다 모든 패치와 답을 담을
<b>클래스 토큰</b>이 서로를 바라보며 정보를 가져옵니다. <b>각각에서 얼마나 가져오는지가 바로
어텐션입니다.</b> 여러 헤드가 저마다의 방식으로 이 일을 나란히 합니다.</p>
<p><b>밝은 패치</b>가 헤드가 본 곳입니다. <b>헤드 벽</b>은 모든 헤드를 한눈에 보여 줍니다. 한 줄이
한 층이고 맨 위가 마지막 층입니다. 하나를 누르면 크게 볼 수 있고, 패치를 가리키면 그 패치가 보는 곳을
볼 수 있습니다.</p>
<p><b>헤드 롤아웃</b>은 한 헤드의 어텐션을 모든 층을 거쳐 픽셀까지 따라가고, <b>롤아웃</b>은 헤드
평균으로 그렇게 하며, <b>원본 어텐션</b>은 한 층만 보여 줍니다. 맵은 정보가 어디에서 왔는지를 보여 줄
뿐, 모델이 왜 그렇게 판단했는지를 증명하지는 않습니다.</p>
<p><b>왜 이 레이블일까요?</b> 2단계에서 눌러 보세요. <b>맵이 참인지</b>는 4단계에서 시험합니다.</p>""",
    "take_title": "가져가기",
    "take": "파일은 3단계에서 설정한 화면을 따릅니다.",
    "take_npz": "맵 (.npz)",
    "take_json": "설명 (.json)",
    "take_gif": "애니메이션 (.gif)",
    "take_webp": "애니메이션 (.webp)",
    "take_html": "탐색기 페이지 (.html)",
    "take_busy": "준비하는 중…",
    "take_done": "{name} 저장됨",
    "take_failed": "파일을 만들지 못했습니다. 사진을 다시 고른 뒤 시도해 주세요.",
    "take_still": "클래스 맵은 모든 층을 한꺼번에 거치므로 재생할 것이 없습니다.",
    "take_code": "파이썬이나 명령줄에서도 똑같이 할 수 있습니다:",
    "about_title": "소개",
    "about": """<p>모델은 읽기 쉬운 파일 하나에 처음부터 새로 작성했고, timm의 가중치가 변환 없이 그대로
들어갑니다. 순전파는 한 번만 하고 이후의 모든 질문은 그 기록으로 답합니다. 층, 헤드, 패치는 브라우저
안에서 바뀝니다. 사진은 이 서버의 메모리에만 있다가 새 사진이 오면 사라집니다.</p>
<p>논문: A. Dosovitskiy et al., <cite>An Image is Worth 16x16 Words: Transformers for Image
Recognition at Scale</cite>, ICLR 2021, <a href="https://arxiv.org/abs/2010.11929">arXiv:2010.11929</a>.
롤아웃: S. Abnar and W. Zuidema, <cite>Quantifying Attention Flow in Transformers</cite>, ACL 2020,
<a href="https://arxiv.org/abs/2005.00928">arXiv:2005.00928</a>.</p>
<p>코드: Apache-2.0. 예시 사진: CC0, 퍼블릭 도메인, Apache-2.0 (assets/README.md 참고). 다른 모델에는
각각의 라이선스가 있습니다.</p>""",
    "cite": "논문 인용하기",
}  # fmt: skip

TEXTS = {"en": ENGLISH, "ko": KOREAN}

EXAMPLE_NAMES = {
    "cat": {"en": "Cat", "ko": "고양이"},
    "lion": {"en": "Lion", "ko": "사자"},
    "cheetah": {"en": "Cheetah", "ko": "치타"},
    "coffee": {"en": "Coffee", "ko": "커피"},
    "tower": {"en": "Tower", "ko": "탑"},
    "rocket": {"en": "Rocket", "ko": "로켓"},
    "horse": {"en": "Horse", "ko": "말"},
    "bus": {"en": "Bus", "ko": "버스"},
    "digit-two": {"en": "Two", "ko": "이"},
    "digit-three": {"en": "Three", "ko": "삼"},
    "digit-four": {"en": "Four", "ko": "사"},
    "digit-five": {"en": "Five", "ko": "오"},
    "digit-seven": {"en": "Seven", "ko": "칠"},
    "digit-eight": {"en": "Eight", "ko": "팔"},
}

CITATION = """@inproceedings{dosovitskiy2021image,
  title     = {An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale},
  author    = {Dosovitskiy, Alexey and Beyer, Lucas and Kolesnikov, Alexander and Weissenborn, Dirk
               and Zhai, Xiaohua and Unterthiner, Thomas and Dehghani, Mostafa and Minderer, Matthias
               and Heigold, Georg and Gelly, Sylvain and Uszkoreit, Jakob and Houlsby, Neil},
  booktitle = {International Conference on Learning Representations},
  year      = {2021}
}"""

# The models people come for, smallest first: (what it is, its timm name).
CURATED = (
    ("ImageNet", "DeiT tiny · patch 16 · 224", "deit_tiny_patch16_224.fb_in1k"),
    ("ImageNet", "DeiT small · patch 16 · 224", "deit_small_patch16_224.fb_in1k"),
    ("ImageNet", "DeiT base · patch 16 · 224", "deit_base_patch16_224.fb_in1k"),
    ("ImageNet", "DeiT base · patch 16 · 384", "deit_base_patch16_384.fb_in1k"),
    ("ImageNet", "ViT tiny · patch 16 · 224", "vit_tiny_patch16_224.augreg_in21k_ft_in1k"),
    ("ImageNet", "ViT tiny · patch 16 · 384", "vit_tiny_patch16_384.augreg_in21k_ft_in1k"),
    ("ImageNet", "ViT small · patch 32 · 224", "vit_small_patch32_224.augreg_in21k_ft_in1k"),
    ("ImageNet", "ViT small · patch 16 · 224", "vit_small_patch16_224.augreg_in21k_ft_in1k"),
    ("ImageNet", "ViT base · patch 32 · 224", "vit_base_patch32_224.augreg_in21k_ft_in1k"),
    ("ImageNet", "ViT base · patch 16 · 224", "vit_base_patch16_224.augreg2_in21k_ft_in1k"),
    ("ImageNet", "ViT base · patch 16 · 384", "vit_base_patch16_384.augreg_in21k_ft_in1k"),
    ("ImageNet", "ViT base · patch 8 · 224", "vit_base_patch8_224.augreg2_in21k_ft_in1k"),
    ("ImageNet", "ViT large · patch 16 · 224", "vit_large_patch16_224.augreg_in21k_ft_in1k"),
    ("ImageNet", "CLIP ViT large · patch 14 · 224", "vit_large_patch14_clip_224.openai_ft_in1k"),
    ("Distilled", "DeiT tiny · patch 16 · 224", "deit_tiny_distilled_patch16_224.fb_in1k"),
    ("Distilled", "DeiT small · patch 16 · 224", "deit_small_distilled_patch16_224.fb_in1k"),
    ("DeiT-III", "small · patch 16 · 224", "deit3_small_patch16_224.fb_in22k_ft_in1k"),
    ("DeiT-III", "base · patch 16 · 384", "deit3_base_patch16_384.fb_in22k_ft_in1k"),
    ("DeiT-III", "large · patch 16 · 224", "deit3_large_patch16_224.fb_in22k_ft_in1k"),
    ("Registers", "ViT little · 4 registers · 256", "vit_little_patch16_reg4_gap_256.sbb_in1k"),
    ("Registers", "ViT medium · 4 registers · 256", "vit_medium_patch16_reg4_gap_256.sbb_in12k_ft_in1k"),
    ("Maps only", "DINO small · patch 16", "vit_small_patch16_224.dino"),
    ("Maps only", "DINO small · patch 8", "vit_small_patch8_224.dino"),
    ("Maps only", "DINOv2 small · patch 14 · 518", "vit_small_patch14_dinov2.lvd142m"),
    ("Maps only", "DINOv2 small · 4 registers", "vit_small_patch14_reg4_dinov2.lvd142m"),
)  # fmt: skip


def words(language: str | None) -> dict[str, str]:
    return TEXTS.get(language, ENGLISH) if isinstance(language, str) else ENGLISH


def language_of(wanted: str | None) -> str:
    """The page's language for a browser's: "ko-KR" is Korean, all others get English."""
    return "ko" if (wanted or "").lower().startswith("ko") else "en"


def one_sentence(error: Exception) -> str:
    """What the library says about an error, on one line."""
    return " ".join(str(error).split())
