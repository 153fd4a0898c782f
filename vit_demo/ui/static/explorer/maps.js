// @ts-check
// Every map of one picture, from the data of one forward pass. Nothing here knows of a page.

import { decode } from "./blob.js";
import { acrossHeads, discarder, headsOf, specialPart, throughLayer } from "./maths.js";

/** @param {number} most */
const squares = (most) => Float32Array.from({ length: most + 1 }, (_, code) => (code / most) ** 2);

const BYTES = squares(255),
  WORDS = squares(65535);

/** Rows and matrices of one picture. Matrices are built when first needed, and kept.
 * @param {Payload} data */
function openAttention(data) {
  const { layers: L, heads: H, tokens: N, arrays, full, later } = data;
  const P = N - data.grid[0] * data.grid[1];
  const discardSmallest = discarder(N, data.pool === "avg" ? null : data.readout_tokens);
  const meanTable = arrays.mean.BYTES_PER_ELEMENT === 1 ? BYTES : WORDS;
  const plain = {},
    fetched = new Map(), // by query
    /** @type {Map<number, { codes: Codes; scales: Vector }>} */
    heads = new Map(); // by layer
  for (let layer = 0; full && layer < L; layer++) {
    heads.set(layer, {
      codes: arrays.heads.subarray(layer * H * N * N, (layer + 1) * H * N * N),
      scales: arrays.heads_scale.subarray(layer * H * N, (layer + 1) * H * N),
    });
  }
  let cut = {},
    cutQueries = {}; // what was made with a discard ratio: only the latest is kept

  /** @param {Patch | null} query */
  const keyOf = (query) => (query ? query.join() : "readout");
  /** @param {Patch | null} query */
  const knows = (query) => full || fetched.has(keyOf(query)); // in every layer
  /** @param {number} layer */
  const hasLayer = (layer) => heads.has(layer);
  /** @param {string} fusion */
  const hasFusion = (fusion) => Boolean(arrays[fusion]);

  /** The tokens a query stands for: [start, stop].
   * @param {Patch | null} query */
  function tokensOf(query) {
    if (!query) return data.readout_tokens;
    const token = P + query[0] * data.grid[1] + query[1];
    return [token, token + 1];
  }

  /** The query as a vector: equal weights on its tokens.
   * @param {Patch | null} query */
  function indicator(query) {
    const [start, stop] = tokensOf(query);
    return new Float32Array(N).fill(1 / (stop - start), start, stop);
  }

  /**
   * @param {number} layer
   * @param {number} head
   * @param {number} token
   * @param {Vector} row */
  function headRow(layer, head, token, row) {
    const { codes, scales } = heads.get(layer),
      at = head * N + token;
    for (let j = 0, o = at * N; j < N; j++, o++) row[j] = BYTES[codes[o]] * scales[at];
  }

  /**
   * @param {number} layer
   * @param {number} token
   * @param {string} fusion
   * @param {Vector} row */
  function fusedRow(layer, token, fusion, row) {
    const codes = arrays[fusion],
      at = layer * N + token,
      scale = arrays[`${fusion}_scale`][at];
    const table = fusion === "mean" ? meanTable : BYTES;
    for (let j = 0, o = at * N; j < N; j++, o++) row[j] = table[codes[o]] * scale;
    if (scale === 0) row[token] = 1; // nothing was left of it: the token stays where it is
  }

  /** The head-mean's row of one patch.
   * @param {number} layer
   * @param {Patch | null} query */
  function meanRow(layer, query) {
    const row = new Float32Array(N);
    fusedRow(layer, tokensOf(query)[0], "mean", row);
    return row;
  }

  /**
   * @param {string} key
   * @param {number} discard
   * @param {(token: number, row: Vector) => void} readRow */
  function matrix(key, discard, readRow) {
    if (discard && cut.ratio !== discard) cut = { ratio: discard };
    const store = discard ? cut : plain;
    if (store[key]) return store[key];
    const M = new Float32Array(N * N),
      row = new Float32Array(N);
    for (let i = 0; i < N; i++) {
      readRow(i, row);
      if (discard) discardSmallest(row, i, discard);
      for (let j = 0, o = i; j < N; j++, o += N) M[o] = row[j];
    }
    store[key] = M;
    return M;
  }
  /**
   * @param {number} layer
   * @param {string} fusion
   * @param {number} discard */
  const fused = (layer, fusion, discard) =>
    matrix(`${fusion}${layer}`, discard, (i, row) => fusedRow(layer, i, fusion, row));
  /**
   * @param {number} layer
   * @param {number} head
   * @param {number} discard */
  const headMatrix = (layer, head, discard) =>
    matrix(`head${layer}.${head}`, discard, (i, row) => headRow(layer, head, i, row));

  /** The query's own attention in each head (H x N), or null while it has not been fetched.
   * @param {number} layer
   * @param {Patch | null} query
   * @param {number} [discard] */
  function queryAttention(layer, query, discard = 0) {
    const stored = query ? fetched.get(keyOf(query))?.from : arrays.readout;
    if (stored && !(discard && full)) return storedAttention(stored, layer, query, discard);
    return hasLayer(layer) ? decodedAttention(layer, query, discard) : null;
  }

  /**
   * @param {Vector} stored
   * @param {number} layer
   * @param {Patch | null} query
   * @param {number} discard */
  function storedAttention(stored, layer, query, discard) {
    const out = stored.slice(layer * H * N, (layer + 1) * H * N),
      [start, stop] = tokensOf(query);
    for (let head = 0; discard && stop - start === 1 && head < H; head++) {
      discardSmallest(out.subarray(head * N, (head + 1) * N), start, discard);
    }
    return out;
  }

  /**
   * @param {number} layer
   * @param {Patch | null} query
   * @param {number} discard */
  function decodedAttention(layer, query, discard) {
    const key = `${keyOf(query)} ${discard}`,
      [start, stop] = tokensOf(query);
    if (cutQueries.key !== key) cutQueries = { key };
    if (cutQueries[layer]) return cutQueries[layer].slice();
    const out = new Float32Array(H * N),
      row = new Float32Array(N);
    const exact = !query && stop - start === 1; // these are sent as they are
    for (let head = 0, o = layer * H * N; head < H; head++, o += N) {
      for (let token = start; token < stop; token++) {
        if (exact) row.set(arrays.readout.subarray(o, o + N));
        else headRow(layer, head, token, row);
        if (discard) discardSmallest(row, token, discard);
        for (let j = 0; j < N; j++) out[head * N + j] += row[j] / (stop - start);
      }
    }
    cutQueries[layer] = out;
    return out.slice();
  }

  /** What every token pays to the query, in each head (H x N). Not a share of 1.
   * @param {number} layer
   * @param {Patch | null} query */
  function toQuery(layer, query) {
    const stored = fetched.get(keyOf(query))?.to;
    if (stored) return stored.slice(layer * H * N, (layer + 1) * H * N);
    if (!hasLayer(layer)) return null;
    const { codes, scales } = heads.get(layer),
      out = new Float32Array(H * N),
      [start, stop] = tokensOf(query);
    for (let at = 0; at < H * N; at++) {
      let total = 0;
      for (let token = start; token < stop; token++) total += BYTES[codes[at * N + token]];
      out[at] = (total * scales[at]) / (stop - start);
    }
    return out;
  }

  /** Is it here?
   * @param {RowsWanted} wanted */
  function remembers(wanted) {
    if ("layer" in wanted) return hasLayer(wanted.layer);
    return "fusion" in wanted ? hasFusion(wanted.fusion) : knows(wanted.query);
  }

  /** Remember what was asked for: a blob as `query_rows`, `layer_rows` or `fused_rows` makes it.
   * @param {RowsWanted} wanted
   * @param {ArrayBuffer} buffer */
  function remember(wanted, buffer) {
    const { arrays: a } = decode(buffer);
    if ("layer" in wanted) {
      heads.set(wanted.layer, { codes: a.heads, scales: a.heads_scale });
    } else if ("fusion" in wanted) {
      Object.assign(arrays, a);
    } else {
      /**
       * @param {Codes} codes
       * @param {Vector} scales */
      const open = (codes, scales) =>
        Float32Array.from(codes, (code, at) => WORDS[code] * scales[Math.floor(at / N)]);
      const rows = { from: open(a.from, a.from_scale), to: open(a.to, a.to_scale) };
      fetched.set(keyOf(wanted.query), rows);
    }
  }

  return {
    L,
    H,
    N,
    P,
    full,
    fusions: hasFusion("max") || later.fusions,
    later,
    knows,
    hasLayer,
    hasFusion,
    indicator,
    meanRow,
    fused,
    headMatrix,
    queryAttention,
    toQuery,
    remembers,
    remember,
  };
}

/** Every map of one picture.
 * @param {Payload} data */
export function createMaps(data) {
  const attention = openAttention(data);
  const { H, N, full, later, knows, hasLayer, hasFusion } = attention,
    { indicator, meanRow, fused, headMatrix, queryAttention, toQuery } = attention;

  /**
   * @param {number} layer
   * @param {Patch | null} query
   * @param {RolloutOptions} options */
  function rollout(layer, query, { fusion = "mean", residual, discard }) {
    let v = indicator(query);
    for (let l = layer; l >= 0; l--) v = throughLayer(v, 1, fused(l, fusion, discard), N, residual);
    return v;
  }

  /** Some heads of a layer (all, if not told), each followed back to the input: (count x N).
   * @param {number} layer
   * @param {Patch | null} query
   * @param {RolloutOptions} options
   * @param {number[]} [only] */
  function headRollouts(layer, query, { below, part, residual, discard }, only) {
    const every = Array.from({ length: H }, (_, head) => head),
      heads = only ?? every,
      special = part === "special";
    if (below === "same") {
      const maps = sameHeadRollouts(layer, query, residual, discard, special ? every : heads);
      return special ? specialPart(maps, N, heads) : maps;
    }
    const first = queryAttention(layer, query, discard);
    if (!first) return null;
    // The layers below are linear: what sets a head apart goes through them by itself.
    const rows = (special ? specialPart : headsOf)(first, N, heads),
      stays = special ? new Float32Array(N) : indicator(query);
    let v = rows.map((x, at) => (1 - residual) * x + residual * stays[at % N]);
    for (let l = layer - 1; l >= 0; l--) {
      v = throughLayer(v, heads.length, fused(l, "mean", discard), N, residual);
    }
    return v;
  }

  /**
   * @param {number} layer
   * @param {Patch | null} query
   * @param {number} residual
   * @param {number} discard
   * @param {number[]} heads */
  function sameHeadRollouts(layer, query, residual, discard, heads) {
    const out = new Float32Array(heads.length * N);
    heads.forEach((head, at) => {
      let v = indicator(query);
      for (let l = layer; l >= 0; l--)
        v = throughLayer(v, 1, headMatrix(l, head, discard), N, residual);
      out.set(v, at * N);
    });
    return out;
  }

  /** Every head of a layer, as the settings ask (H x N): a row of the wall.
   * @param {number} layer
   * @param {State} settings
   * @param {Patch | null} query */
  function layerMaps(layer, settings, query) {
    if (settings.map !== "attention") return headRollouts(layer, query, settings);
    return settings.direction === "to" ? toQuery(layer, query) : queryAttention(layer, query);
  }

  /** The one map the settings ask for (N), or null while something of it has not been fetched.
   * @param {State} settings
   * @param {Patch | null} query */
  function mapOf(settings, query) {
    const { map, layer, head } = settings,
      raw = map === "attention",
      one = typeof head === "number";
    if (map === "rollout") {
      if (missing(settings, query)) return null;
      return rollout(layer, query, { ...settings, fusion: one ? "mean" : head });
    }
    if (query && !knows(query) && !hasLayer(layer) && !missing(settings, query)) {
      // the mean of the heads is known
      return raw ? meanRow(layer, query) : rollout(layer, query, settings);
    }
    if (one && !raw) return headRollouts(layer, query, settings, [head]);
    const all = layerMaps(layer, settings, query);
    return all && (one ? all.slice(head * N, (head + 1) * N) : acrossHeads(all, N, head));
  }

  /** What the map needs and is not here, or null. A layer's heads serve every patch of it.
   * @param {State} state
   * @param {Patch | null} query
   * @returns {RowsWanted | null} */
  function missing({ map, layer, head, direction, discard }, query) {
    if (map === "rollout") {
      const known = typeof head === "number" || head === "mean" || hasFusion(head);
      return known ? null : { fusion: head };
    }
    if (knows(query) || hasLayer(layer)) return null;
    const to = map === "attention" && direction === "to",
      rows = query && (head !== "mean" || (map === "head_rollout" && discard > 0));
    if (!to && !rows) return null;
    return later.layers ? { layer } : { query };
  }

  const { L, P, fusions, remembers, remember } = attention;
  return {
    L,
    H,
    N,
    P,
    full,
    fusions,
    remembers,
    remember,
    queryAttention,
    toQuery,
    rollout,
    headRollouts,
    layerMaps,
    mapOf,
    missing,
    later,
  };
}
