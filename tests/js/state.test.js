// Settings: what a link may say, and the Python code that makes the same map.

import assert from "node:assert/strict";
import { test } from "node:test";
import { findingState } from "../../vit_demo/ui/static/explorer/findings.js";
import { pythonCall, pythonOf } from "../../vit_demo/ui/static/explorer/python.js";
import {
  fitting,
  fusionsOf,
  isClass,
  isOfWall,
  isSigned,
  SCHEMA,
  tileSettings,
  useSchema,
} from "../../vit_demo/ui/static/explorer/state.js";
import { amount, percent, tileName } from "../../vit_demo/ui/static/explorer/words.js";
import { methodOf, stateOf } from "../../vit_demo/ui/static/trust/strip.js";
import { fixtures } from "./fixtures.js";

useSchema(fixtures.schema);
const model = { L: 12, H: 6, full: true, fusions: true };
const top = [
  ["tabby, tabby cat", 0.6, 3],
  ["lion", 0.1, 1],
];
const picture = { grid: [4, 7], classes: 10, top, readout_tokens: [0, 1] };
const fit = (state, change = {}, of = picture) => fitting(state, { ...model, ...change }, of);
const [classMap, otherClassMap] = fixtures.schema.class_maps;

test("nothing asked for gives the defaults, in the last layer", () => {
  assert.deepEqual(fit({}), { ...fixtures.schema.defaults, layer: 11 });
  assert.deepEqual(SCHEMA, fixtures.schema);
});

test("what fits stays as it is", () => {
  const asked = {
    map: "attention",
    layer: 3,
    head: 5,
    query: [3, 6],
    direction: "to",
    smooth: true,
  };
  assert.deepEqual(fit(asked), { ...fixtures.schema.defaults, ...asked });
  for (const [name, choices] of Object.entries(fixtures.schema.choices)) {
    for (const choice of choices) {
      const state = fit({
        map: name === "part" ? "head_rollout" : "attention",
        head: 1,
        [name]: choice,
      });
      assert.equal(state[name], choice, `${name}=${choice}`);
    }
  }
});

test("whatever a link says becomes a state that fits", () => {
  const wild = { map: "nonsense", layer: 99, head: 42, query: [50, "x"], residual: "0.25" };
  const more = { discard: 7, opacity: null, smooth: "true", colours: "jet", extra: "<script>" };
  const state = fit({ ...wild, ...more });
  assert.deepEqual(Object.keys(state), Object.keys(fixtures.schema.defaults));
  assert.equal(state.map, fixtures.schema.defaults.map);
  assert.deepEqual([state.layer, state.head, state.query], [11, "mean", null]);
  assert.equal(fit({ map: "attention", head: 42 }).head, 5);
  assert.deepEqual([state.residual, state.discard, state.opacity], [0.25, 0.99, 0]);
  assert.deepEqual([state.smooth, state.colours], [true, "inferno"]);
  assert.equal(fit({ layer: -2 }).layer, 10);
  assert.equal(fit({ query: [4, 0] }).query, null);
});

test("a class map has a label, and no patch", () => {
  const state = fit({ map: classMap, query: [1, 1] });
  assert.ok(isClass(state));
  assert.deepEqual([state.label, state.minus, state.query], [3, null, null]);
  assert.equal(fit({ map: classMap, label: 1, minus: 1 }).minus, null);
  assert.equal(fit({ map: classMap, label: 1, minus: 10 }).minus, null);
  assert.equal(fit({ map: otherClassMap, label: 1, minus: 2 }).minus, 2);
  assert.equal(fit({ map: "random", label: 1, minus: 2 }).minus, null);
  assert.equal(fit({ map: "rollout", label: 1 }).label, null);
  const headless = fitting({ map: classMap }, model, { ...picture, classes: 0, top: [] });
  assert.deepEqual([headless.map, headless.label], [fixtures.schema.defaults.map, null]);
});

test("rollout has no single head; lean data have no fixed head", () => {
  assert.equal(fit({ map: "rollout", head: 2 }).head, "mean");
  assert.equal(fit({ map: "rollout", head: "max" }).head, "max");
  assert.equal(fit({ map: "rollout", head: "max" }, { fusions: false }).head, "mean");
  assert.equal(fit({ below: "same" }).below, "same");
  assert.equal(fit({ below: "same" }, { full: false }).below, "mean");
  assert.equal(fit({ map: "rollout", direction: "to" }).direction, "from");
});

test("lean data discard nothing where several tokens answer: their rows are not here", () => {
  const several = { ...picture, readout_tokens: [1, 29] };
  assert.equal(fit({ discard: 0.3 }, { full: false }).discard, 0.3);
  assert.equal(fit({ discard: 0.3 }, { full: true }, several).discard, 0.3);
  assert.equal(fit({ discard: 0.3 }, { full: false }, several).discard, 0);
});

test("all heads of a head rollout are rollout, where they are the same map", () => {
  const all = { map: "head_rollout", head: "mean" };
  assert.equal(fit(all).map, "rollout");
  assert.equal(fit({ ...all, below: "same" }).map, "head_rollout");
  assert.equal(fit({ ...all, below: "same" }, { full: false }).map, "rollout");
  assert.equal(fit({ ...all, discard: 0.3 }).map, "head_rollout");
  assert.equal(fit({ ...all, head: "max" }).map, "head_rollout");
  assert.equal(fit({ ...all, map: "attention" }).map, "attention");
});

test("all heads are not offered where they are rollout, nor where one head is special", () => {
  const offered = (state) => fusionsOf(fit(state)),
    head = { map: "head_rollout", head: 1 };
  assert.deepEqual(offered({ map: "rollout" }), SCHEMA.fusions);
  assert.deepEqual(offered({ map: "attention", layer: 0 }), SCHEMA.fusions);
  assert.deepEqual(offered(head), ["max", "min"]);
  assert.deepEqual(offered({ ...head, discard: 0.3 }), SCHEMA.fusions);
  assert.deepEqual(offered({ ...head, below: "same" }), SCHEMA.fusions);
  assert.deepEqual(offered({ ...head, below: "same", layer: 0 }), ["max", "min"]);
  assert.deepEqual(offered({ ...head, part: "special" }), []);
  // A walk through the layers passes the first one, and shows the same fusion before and after.
  const walk = { ...head, head: "mean", below: "same", layer: 0 };
  assert.equal(fit(walk).map, "head_rollout");
  assert.deepEqual(offered(walk), SCHEMA.fusions);
});

test("what is special is one head's, and signed", () => {
  const one = fit({ map: "head_rollout", head: 1, part: "special" });
  assert.equal(one.part, "special");
  assert.ok(isSigned(one));
  for (const other of [
    { head: "max" },
    { map: "rollout" },
    { map: "attention" },
    { map: classMap },
  ])
    assert.equal(fit({ ...one, ...other }).part, "whole", JSON.stringify(other));
  assert.ok(!isSigned(fit({ map: "head_rollout", head: 1 })));
});

test("the schema says which class maps are signed; a difference always is", () => {
  assert.ok(fixtures.schema.signed_maps.length > 0);
  for (const map of fixtures.schema.class_maps) {
    assert.equal(isSigned(fit({ map })), fixtures.schema.signed_maps.includes(map), map);
    if (map !== "random") assert.ok(isSigned(fit({ map, label: 1, minus: 2 })), map);
  }
});

test("picture and wall share a scale where they show the same kind of map", () => {
  const shares = (state) => isOfWall(fit(state));
  const head = { map: "head_rollout", head: 1 };
  assert.ok(shares({ ...head, wall: "whole" }));
  assert.ok(shares({ ...head, part: "special", wall: "special" }));
  assert.ok(!shares({ ...head, wall: "special" }));
  assert.ok(!shares({ ...head, wall: "attention" }));
  assert.ok(shares({ map: "rollout", wall: "whole" }));
  assert.ok(shares({ map: "attention", wall: "attention" }));
  assert.ok(!shares({ map: classMap, wall: "whole" }));
  const tile = tileSettings(fit({ map: classMap, wall: "special" }));
  assert.deepEqual([tile.map, tile.part, tile.label], ["head_rollout", "special", null]);
});

test("a value is read in its unit, with its sign where the map has both", () => {
  const words = { points: "{points} pp" };
  const t = (key, values) => words[key].replace("{points}", values.points);
  const read = (state, value) => amount({ t }, fit(state), value);
  assert.equal(read({ map: "rollout" }, 0.0123), "1.23 %");
  const special = { map: "head_rollout", head: 1, part: "special" };
  assert.equal(read(special, 0.0123), "+1.23 pp");
  assert.equal(read(special, -0.000042), "\u22120.0042 pp");
  assert.equal(read(special, 0), "0 pp");
  assert.equal(read({ map: "contribution" }, -0.012345), "\u22120.0123");
  assert.equal(read({ map: "contribution" }, 2.5), "+2.5");
  assert.equal(read({ map: "relevance" }, 2.5), "2.5");
  assert.equal(read({ map: "gradient_rollout" }, 0.5), "50.0 %");
  assert.equal(read({ map: "gradient_rollout", label: 1, minus: 2 }, 0.5), "+50.0 pp");
});

test("a tile is named also while the numbers of its layer are on their way", () => {
  const explorer = {
    data: { arrays: { distance: [10, 20, 30, 40] }, prefix: { class: 1 } },
    maps: { L: 2, H: 2 },
    state: { direction: "from" },
    t: (key, values) => [key, ...Object.values(values ?? {})].join(" "),
  };
  const named = (wall, tile) => tileName(/** @type {any} */ ({ ...explorer, wall }), tile);
  const focus = [
      [1, 2],
      [3, 4],
    ],
    upper = [undefined, [0.3, 0.4]];
  assert.equal(named({ focus, prefix: upper }, [0, 1]), "wall_name 1 2");
  assert.equal(named({ focus: [], prefix: upper }, [1, 1]), "wall_name 2 2");
  const whole = named({ focus, prefix: upper }, [1, 1]);
  assert.equal(whole, "wall_name 2 2 · wall_facts 40 4.0 · wall_stays 40.0 % of_class");
});

test("a finding leaves nothing of what was set before, but the looks", () => {
  const state = findingState({ name: "x", example: "y", settings: { map: "attention", layer: 2 } });
  assert.deepEqual([state.map, state.layer, state.query, state.discard], ["attention", 2, null, 0]);
  for (const looks of ["colours", "opacity", "picture"]) assert.ok(!(looks in state), looks);
  assert.equal(state.wall, "attention"); // its tile is framed there
  const settings = { map: classMap, label: 1 };
  assert.ok(!("wall" in findingState({ name: "x", example: "y", settings }))); // which has no such tiles
});

test("the Python call has the library's names and arguments", () => {
  const call = (state) => pythonCall(fit(state));
  assert.equal(
    call({ map: "head_rollout", head: 1, layer: 2, query: [1, 3], residual: 0.3 }),
    "explanation.head_rollouts(2, query=(1, 3), residual=0.3, discard=0)[1]",
  );
  assert.equal(
    call({ map: "head_rollout", head: 3, part: "special" }),
    'explanation.head_rollouts(11, part="special", residual=0.5, discard=0)[3]',
  );
  assert.equal(
    call({ map: "head_rollout", head: "max", below: "same", discard: 0.4 }),
    'explanation.head_rollouts(11, below="same", residual=0.5, discard=0.4).amax(dim=0)',
  );
  assert.equal(
    call({ map: "rollout", head: "min" }),
    'explanation.rollout(11, fusion="min", residual=0.5, discard=0)',
  );
  assert.equal(
    call({ map: "attention", head: 2, direction: "to", query: [0, 5] }),
    'explanation.attention(11, head=2, query=(0, 5), direction="to")',
  );
  assert.equal(
    call({ map: "relevance", label: 1, minus: 0 }),
    "explanation.relevance(1) - explanation.relevance(0)",
  );
  assert.equal(
    call({ map: "contribution", label: 1, minus: 0 }),
    "explanation.contribution(1, minus=0)",
  );
  assert.equal(call({ map: "random", label: 0 }), "faithful.random_map(explanation)");
});

test("names of models and labels cannot break the Python code", () => {
  const data = { ...picture, model: 'a"b\\c\nd', fit: "crop" };
  const shown = { scale: { low: 0.001, high: 0.123456789 } };
  const explorer = { state: fit({}), shown, data, maps: model, classes: new Map() };
  const lines = pythonOf(/** @type {any} */ (explorer)).split("\n");
  assert.ok(lines.includes('classifier = vit_demo.load("a\\"b\\\\c\\nd")'), lines.join("\n"));
  assert.ok(lines.includes("    scale=(0.001, 0.123457),"));
});

test("a method's settings are recognised again", () => {
  for (const method of ["raw", "rollout", ...fixtures.schema.class_maps]) {
    assert.equal(methodOf(fit(stateOf(method, 2)), model.L), method);
  }
  assert.equal(methodOf(fit({ map: "rollout", residual: 0.3 }), model.L), "shown");
  assert.equal(methodOf(fit({ map: "attention", layer: 4 }), model.L), "shown");
});

test("shares are read with three digits", () => {
  assert.equal(percent(0.12345), "12.3 %");
  assert.equal(percent(0.012345), "1.23 %");
  assert.equal(percent(0.0012345), "0.123 %");
  assert.equal(percent(0.000001), "< 0.001 %");
  assert.equal(percent(0), "0 %");
});
