// The shapes of the page's data, for the type checker; browsers never see this file.

type Codes = Uint8Array | Int8Array | Uint16Array | Int16Array | Float32Array;
type Vector = Float32Array;
type Patch = [row: number, column: number];
type Grid = [rows: number, columns: number];
type Box = [left: number, top: number, right: number, bottom: number];
type Fusion = "mean" | "max" | "min";
type Texts = Record<string, string>;
type Translate = (key: string, values?: Record<string, unknown>) => string;
type Elements = Record<string, any>; // by name; each module knows the kind of its own
type ColourTable = Uint32Array; // 256 opaque pixels

/** What is looked at: `MapSettings` of map_settings.py. */
interface State {
  map: string;
  layer: number;
  head: number | Fusion;
  query: Patch | null;
  direction: string;
  below: string;
  part: string;
  wall: string;
  picture: string;
  residual: number;
  discard: number;
  opacity: number;
  smooth: boolean;
  colours: string;
  scale: string;
  sort: string;
  label: number | null;
  minus: number | null;
}

/** `SCHEMA` of map_settings.py. */
interface Schema {
  defaults: State;
  choices: Record<string, string[]>;
  fusions: Fusion[];
  plain_maps: string[];
  class_maps: string[];
  signed_maps: string[];
}

/** The words behind each "?": `GLOSSARY` of the texts, in every language. */
type Glossary = Record<
  string,
  { question: string; words: Record<string, [name: string, sentence: string]> }
>;

/** What explorer.py hands over once. */
interface Setup {
  css: string;
  glossary: Glossary;
  findings: Record<string, FindingLink[]>; // of each model that has some
  texts: Record<string, Texts>;
  labels?: Record<string, Texts>; // of each language that has its own
  colours: Record<string, string>;
  schema: Schema;
}

/** A finding as findings.py has it. */
interface FindingLink {
  name: string;
  example: string;
  settings: Partial<State>;
}

/** What the place adds in which the explorer is put; without a server nothing can be fetched. */
interface MountOptions extends Setup {
  language?: string;
  onState?: (state: State) => void;
  onTheme?: (then: () => void) => void;
  fetchRowsBlob?: (wanted: RowsWanted) => Promise<ArrayBuffer>;
  fetchClassMaps?: (labels: number[]) => Promise<Record<string, ClassMaps>>;
  openExample?: (example: string, state: Partial<State>) => void;
}

/** What questions.py hands over once. */
interface TrustSetup {
  texts: Record<string, Texts>;
  methods: string[];
  removals: string[];
  fills: string[];
}

/** The blob of payload.py, decoded. */
interface Payload {
  model: string;
  layers: number;
  heads: number;
  tokens: number;
  grid: Grid;
  patch: [number, number];
  prefix: Record<string, number>;
  readout_tokens: [start: number, stop: number];
  pool: string;
  fit: string;
  full: boolean;
  later: { layers: boolean; fusions: boolean }; // what can be asked for
  picture: { kind: string; size: [width: number, height: number]; crisp: number };
  preview: { kind: string; size: [width: number, height: number] } | null;
  top: [label: string, probability: number, index: number][];
  classes: number;
  arrays: Record<string, any>;
}

/** What a lean payload left out: a layer's heads, a fusion of all layers, a patch's rows in all layers. */
type RowsWanted = { layer: number } | { fusion: string } | { query: Patch | null };

/** One class of payload.py's `class_maps`, as it is sent. */
interface ClassMaps {
  name: string;
  probability: number;
  data: string;
}

/** The same, decoded: every class map by its name. */
interface KnownClass {
  name: string;
  probability: number;
  maps: Record<string, Vector>;
}

/** Where a map lies: its grid over a box. */
interface Place {
  grid: Grid;
  box: Box;
}

interface RolloutOptions {
  fusion?: string;
  residual: number;
  discard: number;
  below?: string;
  part?: string;
}

type Maps = ReturnType<typeof import("./explorer/maps.js").createMaps>;

interface Scale {
  low: number;
  high: number;
  clipped?: boolean;
}

interface WallLayout {
  heads: number;
  blocks: number;
  lines: number;
  label: number;
  gap: number;
  w: number;
  h: number;
  block: number;
  width: number;
  height: number;
}

interface Wall {
  key: string | null; // what was computed, or is being computed ...
  job: object | null; // ... in this job
  chosen: boolean; // the visitor has chosen the view
  model: string | null; // for which the view was chosen
  view: string | null;
  whole: Vector[][];
  prefix: number[][]; // what lies on the tokens that are no patches
  layers: Vector[][];
  scales: Scale[];
  focus: number[][];
  sheet: { table: ColourTable; canvas: HTMLCanvasElement } | null;
  layout: WallLayout | null;
  order: [layer: number, head: number][];
  hover: number | null;
}

/** A picture that can lie under the map, in colour and in grey. */
interface Ground {
  colour: ImageBitmap;
  grey: HTMLCanvasElement;
  crisp: boolean; // its pixels are shown as blocks
}

/** What was drawn last. */
interface Shown {
  query: Patch | null;
  vector: Vector;
  values: Vector;
  scale: Scale;
  settings: State; // of the map that is drawn
}

type Part = "picture" | "tiles" | "wall";

/** Everything one explorer knows. The functions of all its modules take it as their first argument. */
interface Explorer {
  root: ExplorerRoot;
  id: string;
  texts: Record<string, Texts>;
  labels: Record<string, Texts>;
  words: Texts;
  tables: Record<string, ColourTable>;
  ui: Elements;
  onState: (state: State) => void;
  fetchRowsBlob: MountOptions["fetchRowsBlob"] | null;
  fetchClassMaps: MountOptions["fetchClassMaps"] | null;
  openExample: MountOptions["openExample"] | null;
  findingsOf: Setup["findings"];
  example: string | null;
  image: string;
  classes: Map<number, KnownClass>;
  lastPlain: string;
  trouble: string;
  data: Payload | null;
  maps: Maps | null;
  grounds: { own: Ground; seen: Ground } | null;
  wish: Partial<State>;
  state: State;
  lastHead: number;
  lastPart: string;
  hover: Patch | null;
  cursor: Patch | null;
  followPointer: boolean;
  peek: boolean;
  learned: boolean;
  base: { key: string | null; vector: Vector | null };
  shown: Shown | null;
  wall: Wall;
  dirty: Partial<Record<Part, boolean>>;
  pending: number;
  drawn: number;
  load: number;
  fetching: Map<string, Maps>;
  playing: Timer | null;
  dwellTimer: Timer;
  layerTimer: Timer;
  reportTimer: Timer;
  t: Translate;
  set: (changes: Partial<State>, quiet?: boolean) => void;
  draw: (...parts: Part[]) => void;
  togglePlay: () => void;
  stopPlaying: () => void;
}

type Timer = ReturnType<typeof setTimeout>;

/** What other parts of the page may do with the explorer: `root.explorer`. */
interface ExplorerHandle {
  show: (
    buffer: ArrayBuffer,
    changes?: Partial<State>,
    classes?: Record<string, ClassMaps>,
    file?: Pick<ExplorerValue, "example" | "image">,
  ) => Promise<void>;
  clear: (text?: string) => void;
  set: Explorer["set"];
  leaveClass: () => void;
  speak: (language?: string) => void;
  message: (text: string) => void;
  reveal: () => void;
  python: () => string;
  sheet: () => HTMLCanvasElement;
  readonly state: State;
  readonly maps: Maps | null;
  readonly data: Payload | null;
  readonly ground: Ground; // under the map
  readonly grounds: { own: Ground; seen: Ground };
  readonly tables: Record<string, ColourTable>;
  readonly classes: Map<number, KnownClass>;
  readonly values: Vector | null; // of the locked map
}
type ExplorerRoot = HTMLElement & { explorer?: ExplorerHandle };
type ExplorerValue = {
  id?: string;
  url?: string;
  example?: string | null;
  image?: string;
  state?: Partial<State> | null;
};

/** What Gradio hands to a component's `js_on_load`, besides its element. */
interface GradioComponent {
  props: Record<string, any>;
  trigger: (event: string, data?: unknown) => void;
  watch: (names: string | string[], then: () => void) => void;
  server: Record<string, (request: object) => Promise<any>>;
}

/** Curves and scores of questions.py's `trust`. */
interface TrustResult {
  label: number;
  name: string;
  remove: string;
  kept: number[];
  random: number[][];
  band: number;
  maps: Record<string, MethodResult>;
  best: BestMethod | null;
  thorough?: boolean;
}

/** Which method did best on this picture; null: none did better than chance. */
interface BestMethod {
  method: string | null;
  score: number | null;
  second: string | null;
  second_score: number | null;
}

interface MethodResult {
  deletion: number[];
  insertion: number[];
  score: number;
  verdict: string;
}

interface Cascade {
  label: number;
  method: string;
  heats: Vector[];
  correlations: number[];
  passed: boolean;
}

interface HeadWall {
  label: number;
  before: number;
  changes: number[][];
}

interface Job {
  run: string;
  kind: string;
  done: (result: any) => void;
  at: number;
  of: number;
  queue: string;
}

/** What is switched off. */
interface Off {
  heads: Set<string>;
  layers: Set<number>;
  patches: Set<string>;
  fill: string;
}

interface Change {
  label: string;
  index: number;
  before: number;
  after: number;
}

/** Everything the section "Can I trust this map?" knows. */
interface Trust extends TrustSetup {
  root: HTMLElement;
  props: GradioComponent["props"];
  trigger: GradioComponent["trigger"];
  server: GradioComponent["server"];
  explorer: ExplorerHandle;
  ui: Elements;
  language: string;
  id: string | null;
  classes: number;
  label: number | null;
  ready: boolean;
  near: boolean;
  remove: string;
  selected: string;
  method: string;
  job: Job | null;
  runs: number;
  turn: number;
  maps: Map<number, Record<string, Vector> | null>;
  results: Map<string, TrustResult>;
  cascades: Map<string, Cascade>;
  walls: Map<number, HeadWall>;
  off: Off;
  without: { before?: Change[]; after?: Change[]; error?: string } | null;
  trouble: string;
  cursor: Patch | null;
  brush: { on: boolean; at: Patch } | null;
  stale?: boolean;
  looks?: string;
  frame?: number;
  waiting?: Timer;
  t: Translate;
  showAll: () => void;
}

/** What inside.py hands over once. */
interface WalkSetup {
  css: string;
  texts: Record<string, Texts>;
  sources: Record<number, Source[]>;
}

/** A piece of the project's own source; `marked` counts from 0. */
interface Source {
  file: string;
  first: number;
  lines: string[];
  marked: number[];
}

/** `facts` of inside.py: the model's numbers. */
interface Facts {
  model: string;
  classes: number;
  size: [height: number, width: number];
  channels: number;
  patch: [number, number];
  grid: Grid;
  prefix: Record<string, number>;
  tokens: number;
  width: number;
  layers: number;
  heads: number;
  units: number;
  pool: string;
  distilled: boolean;
  pre_norm: boolean;
  mean: number[];
  std: number[];
  each_with_each: boolean;
  examples: number;
}

interface WalkChoice {
  query: Patch | null;
  layer: number;
  head: number;
  label: number | null;
}

/** Where the walk is put: who knows what is chosen, and has the picture. */
interface WalkHost {
  readonly id: string | null;
  readonly choice: WalkChoice;
  readonly pictures: {
    ground: Ground; // what lies under a map
    seen: Ground; // the very pixels of the model
    tables: Record<string, ColourTable>;
    colours: string;
    data: Payload;
  };
  choose: (changes: Partial<WalkChoice>) => void;
  onChange: (then: () => void) => void;
}

/** A part that is asked for: its name, and what was chosen. */
type Wish = [part: string, params: Record<string, any>];
type PartAnswer = Record<string, any> & { arrays: Record<string, any> };

/** What a step has put on the screen. */
interface Built {
  node: HTMLElement;
  draw: (answers: PartAnswer[]) => void;
}

interface WalkStep {
  name: string;
  uses: string[];
  onlyPatches?: boolean;
  needsLabels?: boolean;
  shapes: (facts: Facts, t: Translate) => [before: string, after: string];
  needs: (walk: Walk) => Wish[];
  guess: (
    walk: Walk,
    answers: PartAnswer[],
  ) => { right: string; values: Record<string, any>; text?: string };
  build: (walk: Walk) => Built;
}

/** Everything the tab Inside knows. */
interface Walk extends Omit<WalkSetup, "css"> {
  root: HTMLElement;
  host: WalkHost;
  ask: (request: object) => Promise<any>;
  language: string;
  ui: Elements;
  id: string | null;
  facts: Facts | null;
  choice: WalkChoice | null;
  step: number;
  page: string;
  ofPicture: Map<string, any>;
  ofModel: Map<string, any>;
  guesses: Map<string, string>;
  folds: Set<string>;
  local: Record<string, any>;
  turn: number;
  frame: number;
  built: (Built & { needs: () => Wish[]; uses: string[]; onlyPatches?: boolean }) | null;
  answers: PartAnswer[] | null;
  t: Translate;
  choose: (changes: Partial<WalkChoice>) => void;
  say: (text: string) => void;
  refresh: () => void;
  redraw: () => void;
  go: (step: number) => void;
}

/** What ui/compare.py hands over once. */
interface CompareSetup {
  texts: Record<string, Texts>;
  chooser: Record<string, Texts>;
  shares: string[]; // maps whose numbers mean the same in every model
}

/** The first one: what is on the page. */
interface CompareValue {
  id: string;
  example: string | null;
  examples: string[]; // that its model knows
  answers: NamedAnswer[];
}

/** What ui/compare.py says of the second one. */
interface Pair {
  id: string;
  url: string;
  same_picture: boolean;
  boxes: [Box, Box];
  bounds: Box;
  agree: boolean | null;
  answers: NamedAnswer[];
  labels: PairLabel[];
  matches: Record<string, number>;
}

/** A label in every language. */
interface NamedAnswer {
  names: Texts;
  probability: number;
}

interface PairLabel {
  names: Texts;
  first: number | null;
  second: number | null;
  index: number | null;
}

/** The second one, opened; `of` is the first one that it belongs to. */
interface Second extends Pair {
  of?: string;
  data: Payload;
  maps: Maps;
  grounds: Explorer["grounds"];
  classes: Map<number, KnownClass>;
  asked: Set<string>;
}

/** One side: its map, and where it lies. */
interface View {
  state: State;
  values: Vector | null;
  place: Place;
  ground: Ground;
}

/** Both sides, and what lies between them. */
interface Views {
  sides: View[];
  notes: string[];
  frame: Box;
  grid: Grid;
  seen: boolean[];
  maps: Float64Array[] | null;
  difference: Float64Array | null;
  correlation: number;
}

/** Everything the tab Compare knows. */
interface Compare extends CompareSetup {
  root: HTMLElement;
  id: string;
  props: GradioComponent["props"];
  trigger: GradioComponent["trigger"];
  server: GradioComponent["server"];
  explorer: ExplorerHandle;
  ui: Elements;
  language: string;
  chosenModel: { value: string; shown: string; text: Texts; language: string };
  first: CompareValue | null;
  mode: string;
  wish: { model?: string; example?: string; file?: string };
  run: number;
  asked: string;
  second: Second | null;
  waiting: boolean;
  status: string;
  trouble: string;
  views: Views | null;
  chosen: { first: Patch; second: Patch } | null;
  hover: { side: number; patch: Patch } | null;
  frame: number;
  stale?: boolean;
  set: Explorer["set"];
  t: Translate;
  change: (changes: { mode?: string; model?: string; example?: string; file?: string }) => void;
  send: (file: File) => void;
  draw: () => void;
  redraw: () => void;
  say: (key: string) => void;
  announce: () => void;
}

/** What learn.py hands over once. */
interface LearnSetup {
  texts: Record<string, Texts>;
  examples: Record<string, [name: string, label: string, src: string][]>;
  maps: string[];
}

interface LearnFunction {
  name: string;
  file: string;
  first: number;
  code: string;
}

/** learn.py's `training_history`. */
interface LearnHistory {
  moments: {
    step: number;
    epoch: number;
    train_loss: number | null;
    test_loss: number;
    accuracy: number;
    confusion: number[][];
  }[];
  labels: string[];
  steps: number;
  epochs: number;
  batch_size: number;
  test_pictures: number;
  grid: Grid;
  positions: string;
  command: string;
  code: { part: string; functions: LearnFunction[] }[];
}

/** learn.py's `digit_over_time`, decoded: maps are (moments, layers, heads, patches). */
interface LearnDigit {
  probabilities: number[][];
  layers: number;
  heads: number;
  maps: Record<string, Vector>;
  size: [width: number, height: number];
  pixels: Uint8Array;
}

/** Everything the tab "Learn" knows. */
interface Learn extends LearnSetup {
  root: HTMLElement;
  server: GradioComponent["server"];
  ui: Elements;
  language: string;
  tables: Record<string, ColourTable>;
  colours: string;
  map: string;
  history: LearnHistory | null;
  positions: Vector | null;
  example: string | null;
  drawing: string | null;
  digit: LearnDigit | null;
  turn: number;
  at: number;
  playing: Timer | null;
  t: Translate;
  number: (x: number, digits?: number) => string;
  go: (at: number) => void;
}
