// The explorer's numbers: from the blob that `explorer.py` packs to every map of one picture.
// The definitions are those of `attention.py`, and a test holds the two against each other.
// Nothing here knows of a page.

// ---- The blob

const TYPES = { uint8: Uint8Array, uint16: Uint16Array, float32: Float32Array };

function decode(buffer) {
  const head = new DataView(buffer);
  if (head.getUint32(0) !== 0x56495458) throw new Error("not the explorer's data"); // "VITX"
  const start = 8 + head.getUint32(4, true);
  const data = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, start - 8)));
  for (const [name, { dtype, shape, offset }] of Object.entries(data.arrays)) {
    const count = shape.reduce((a, b) => a * b, 1);
    data.arrays[name] = new TYPES[dtype](buffer, start + offset, count);
  }
  return data;
}

const fromBase64 = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

// ---- Rows and matrices
// A vector has N numbers, prefix tokens first. A matrix is kept transposed, M[j * N + i] = A[i, j],
// so that v A is a row of dot products.

/** Through one layer, backwards, for `count` vectors: v = (1 - residual) v A + residual v. */
function step(v, count, M, N, residual) {
  const out = new Float32Array(v.length), through = 1 - residual;
  let b = 0;
  for (; b + 3 < count; b += 4) { // four at once: each number of the matrix is read once for all
    const p = b * N, q = p + N, r = q + N, s = r + N;
    for (let j = 0, o = 0; j < N; j++) {
      let w = 0, x = 0, y = 0, z = 0;
      for (let i = 0; i < N; i++, o++) {
        const m = M[o];
        w += m * v[p + i]; x += m * v[q + i]; y += m * v[r + i]; z += m * v[s + i];
      }
      out[p + j] = through * w + residual * v[p + j];
      out[q + j] = through * x + residual * v[q + j];
      out[r + j] = through * y + residual * v[r + j];
      out[s + j] = through * z + residual * v[s + j];
    }
  }
  for (; b < count; b++) {
    const p = b * N;
    for (let j = 0, o = 0; j < N; j++) {
      let w = 0;
      for (let i = 0; i < N; i++, o++) w += M[o] * v[p + i];
      out[p + j] = through * w + residual * v[p + j];
    }
  }
  return out;
}

/** A row sums to 1; of a row of zeros nothing was left, and the token stays where it is. */
function normalise(row, token) {
  let total = 0;
  for (let j = 0; j < row.length; j++) total += row[j];
  if (total > 0) for (let j = 0; j < row.length; j++) row[j] /= total;
  else { row.fill(0); row[token] = 1; }
}

/** Hoare's selection: moves the k smallest of the first `count` numbers to the front, the largest
 * of them last, and returns that one. */
function selectSmallest(numbers, count, k) {
  let low = 0, high = count - 1;
  while (low < high) {
    const pivot = numbers[(low + high) >> 1];
    let i = low, j = high;
    while (i <= j) {
      while (numbers[i] < pivot) i++;
      while (numbers[j] > pivot) j--;
      if (i <= j) {
        const swap = numbers[i];
        numbers[i++] = numbers[j];
        numbers[j--] = swap;
      }
    }
    if (k - 1 <= j) high = j;
    else if (k - 1 >= i) low = i;
    else break;
  }
  return numbers[k - 1];
}

/** Makes discard(row, token, ratio), for rows of N numbers: zero the smallest entries of a token's
 * row, never the read-out's columns nor the diagonal. Of equal entries the first ones go.
 *
 * Every row of every layer comes here when the ratio changes, so nothing is sorted: numbers that are
 * not negative have the order of their bits, counting the leading bits tells where the limit lies,
 * and only the few numbers near it are compared. */
function discarder(N, readout) {
  const [start, stop] = readout || [0, 0], LEADING = 21; // sign, exponent, two bits of the fraction
  const free = new Float32Array(N), bits = new Uint32Array(free.buffer), near = new Float32Array(N);
  const counts = new Uint32Array((0x7f800000 >>> LEADING) + 1); // up to the bits of Infinity

  return (row, token, ratio) => {
    free.set(row);
    free.fill(Infinity, start, stop);
    free[token] = Infinity;
    const count = N - (stop - start) - (token >= start && token < stop ? 0 : 1);
    const gone = Math.floor(Math.fround(count * Math.fround(ratio)));
    if (gone > 0) {
      counts.fill(0);
      for (let j = 0; j < N; j++) counts[bits[j] >>> LEADING]++;
      let leading = 0, left = gone, close = 0;
      while (counts[leading] < left) left -= counts[leading++];
      for (let j = 0; j < N; j++) if (bits[j] >>> LEADING === leading) near[close++] = free[j];
      const limit = selectSmallest(near, close, left);
      let ties = 0; // how many of those that equal the limit go
      for (let k = 0; k < left; k++) if (near[k] === limit) ties++;
      for (let j = 0; j < N; j++) {
        if (free[j] < limit || (free[j] === limit && ties-- > 0)) row[j] = 0;
      }
    }
    normalise(row, token);
  };
}

// ---- The attention of one picture, from codes to numbers

const squares = (most) => Float32Array.from({ length: most + 1 }, (_, code) => (code / most) ** 2);
const BYTES = squares(255), WORDS = squares(65535);

/** Rows and matrices of one picture. Matrices are built when first needed, and kept. */
function openAttention(data) {
  const { layers: L, heads: H, tokens: N, arrays, full } = data;
  const P = N - data.grid[0] * data.grid[1];
  const discardSmallest = discarder(N, data.pool === "avg" ? null : data.readout);
  const meanTable = arrays.mean.BYTES_PER_ELEMENT === 1 ? BYTES : WORDS;
  const plain = {}, fetched = new Map();
  let cut = {}, cutRows = {}; // what was made with a discard ratio: only the latest is kept

  const keyOf = (query) => (query ? query.join() : "readout");
  const knows = (query) => full || fetched.has(keyOf(query));

  /** The tokens a query stands for: [start, stop]. */
  function tokensOf(query) {
    if (!query) return data.readout;
    const token = P + query[0] * data.grid[1] + query[1];
    return [token, token + 1];
  }

  /** The query as a vector: equal weights on its tokens. */
  function indicator(query) {
    const [start, stop] = tokensOf(query);
    return new Float32Array(N).fill(1 / (stop - start), start, stop);
  }

  function headRow(layer, head, token, row) {
    const at = (layer * H + head) * N + token, scale = arrays.heads_scale[at];
    for (let j = 0, o = at * N; j < N; j++, o++) row[j] = BYTES[arrays.heads[o]] * scale;
  }

  function fusedRow(layer, token, fusion, row) {
    const codes = arrays[fusion], at = layer * N + token, scale = arrays[`${fusion}_scale`][at];
    const table = fusion === "mean" ? meanTable : BYTES;
    for (let j = 0, o = at * N; j < N; j++, o++) row[j] = table[codes[o]] * scale;
    if (scale === 0) row[token] = 1; // nothing was left of it: the token stays where it is
  }

  /** The head-mean's row of one patch. */
  function meanRow(layer, query) {
    const row = new Float32Array(N);
    fusedRow(layer, tokensOf(query)[0], "mean", row);
    return row;
  }

  function matrix(key, discard, readRow) {
    if (discard && cut.ratio !== discard) cut = { ratio: discard };
    const store = discard ? cut : plain;
    if (store[key]) return store[key];
    const M = new Float32Array(N * N), row = new Float32Array(N);
    for (let i = 0; i < N; i++) {
      readRow(i, row);
      if (discard) discardSmallest(row, i, discard);
      for (let j = 0, o = i; j < N; j++, o += N) M[o] = row[j];
    }
    return (store[key] = M);
  }
  const fused = (layer, fusion, discard) =>
    matrix(`${fusion}${layer}`, discard, (i, row) => fusedRow(layer, i, fusion, row));
  const headMatrix = (layer, head, discard) =>
    matrix(`head${layer}.${head}`, discard, (i, row) => headRow(layer, head, i, row));

  /** The query's own attention in each head (H x N), or null while it has not been fetched. */
  function rows(layer, query, discard = 0) {
    const stored = query ? fetched.get(keyOf(query))?.from : arrays.rows;
    if (stored && !(discard && full)) return storedRows(stored, layer, query, discard);
    return full ? decodedRows(layer, query, discard) : null;
  }

  function storedRows(stored, layer, query, discard) {
    const out = stored.slice(layer * H * N, (layer + 1) * H * N), [start, stop] = tokensOf(query);
    for (let head = 0; discard && stop - start === 1 && head < H; head++) {
      discardSmallest(out.subarray(head * N, (head + 1) * N), start, discard);
    }
    return out;
  }

  function decodedRows(layer, query, discard) {
    const key = `${keyOf(query)} ${discard}`, [start, stop] = tokensOf(query);
    if (cutRows.key !== key) cutRows = { key };
    if (cutRows[layer]) return cutRows[layer].slice();
    const out = new Float32Array(H * N), row = new Float32Array(N);
    const exact = !query && stop - start === 1; // these are sent as they are
    for (let head = 0, o = layer * H * N; head < H; head++, o += N) {
      for (let token = start; token < stop; token++) {
        if (exact) row.set(arrays.rows.subarray(o, o + N));
        else headRow(layer, head, token, row);
        if (discard) discardSmallest(row, token, discard);
        for (let j = 0; j < N; j++) out[head * N + j] += row[j] / (stop - start);
      }
    }
    cutRows[layer] = out;
    return out.slice();
  }

  /** What every token pays to the query, in each head (H x N). Not a share of 1. */
  function toQuery(layer, query) {
    if (!full) {
      const stored = fetched.get(keyOf(query))?.to;
      return stored ? stored.slice(layer * H * N, (layer + 1) * H * N) : null;
    }
    const out = new Float32Array(H * N), [start, stop] = tokensOf(query);
    for (let at = 0, row = layer * H * N; at < H * N; at++, row++) {
      let total = 0;
      for (let token = start; token < stop; token++) total += BYTES[arrays.heads[row * N + token]];
      out[at] = total * arrays.heads_scale[row] / (stop - start);
    }
    return out;
  }

  /** Remember the rows of one query: a blob as `query_rows` makes it. */
  function remember(query, buffer) {
    const { arrays: a } = decode(buffer);
    const open = (codes, scales) => Float32Array.from(codes, (code, at) =>
      WORDS[code] * scales[Math.floor(at / N)]);
    fetched.set(keyOf(query), { from: open(a.from, a.from_scale), to: open(a.to, a.to_scale) });
  }

  return { L, H, N, P, full, fusions: Boolean(arrays.max), knows, indicator, meanRow, fused,
    headMatrix, rows, toQuery, remember };
}

// ---- The maps

function acrossHeads(all, N, how) {
  const out = all.slice(0, N), count = all.length / N;
  for (let at = 1; at < count; at++) {
    for (let j = 0; j < N; j++) {
      const x = all[at * N + j];
      out[j] = how === "mean" ? out[j] + x : how === "max" ? Math.max(out[j], x) : Math.min(out[j], x);
    }
  }
  if (how === "mean") for (let j = 0; j < N; j++) out[j] /= count;
  return out;
}

/** Every map of one picture. */
function createMaps(data) {
  const attention = openAttention(data);
  const { H, N, full, knows, indicator, meanRow, fused, headMatrix, rows, toQuery } = attention;

  function rollout(layer, query, { fusion = "mean", residual = 0.5, discard = 0 } = {}) {
    let v = indicator(query);
    for (let l = layer; l >= 0; l--) v = step(v, 1, fused(l, fusion, discard), N, residual);
    return v;
  }

  /** Some heads of a layer (all, if not told), each followed back to the input: (count x N). */
  function headRollouts(layer, query, { below = "mean", residual = 0.5, discard = 0 } = {}, only) {
    const heads = only ?? Array.from({ length: H }, (_, head) => head);
    if (below === "same") return sameHeadRollouts(layer, query, residual, discard, heads);
    const first = rows(layer, query, discard);
    if (!first) return null;
    let v = new Float32Array(heads.length * N);
    const asked = indicator(query);
    heads.forEach((head, at) => {
      for (let j = 0; j < N; j++) {
        v[at * N + j] = (1 - residual) * first[head * N + j] + residual * asked[j];
      }
    });
    for (let l = layer - 1; l >= 0; l--) {
      v = step(v, heads.length, fused(l, "mean", discard), N, residual);
    }
    return v;
  }

  function sameHeadRollouts(layer, query, residual, discard, heads) {
    const out = new Float32Array(heads.length * N);
    heads.forEach((head, at) => {
      let v = indicator(query);
      for (let l = layer; l >= 0; l--) v = step(v, 1, headMatrix(l, head, discard), N, residual);
      out.set(v, at * N);
    });
    return out;
  }

  /** Every head of a layer, as the settings ask (H x N): a row of the wall. */
  function layerMaps(layer, settings, query) {
    if (settings.map !== "attention") return headRollouts(layer, query, settings);
    return settings.direction === "to" ? toQuery(layer, query) : rows(layer, query);
  }

  /** The one map the settings ask for (N), or null while its rows have not been fetched. */
  function mapOf(settings, query) {
    const { map, layer, head } = settings, raw = map === "attention", one = typeof head === "number";
    if (map === "rollout") {
      return rollout(layer, query, { ...settings, fusion: one ? "mean" : head });
    }
    if (query && !knows(query) && !needsRows(settings, query)) { // the mean of the heads is known
      return raw ? meanRow(layer, query) : rollout(layer, query, settings);
    }
    if (one && !raw) return headRollouts(layer, query, settings, [head]);
    const all = layerMaps(layer, settings, query);
    return all && (one ? all.slice(head * N, (head + 1) * N) : acrossHeads(all, N, head));
  }

  function needsRows({ map, head, direction, discard }, query) {
    if (map === "rollout" || knows(query)) return false;
    const to = map === "attention" && direction === "to";
    if (!query) return to;
    return to || head !== "mean" || (map === "head_rollout" && discard > 0);
  }

  const { L, P, fusions, remember } = attention;
  return { L, H, N, P, full, fusions, knows, remember, rows, toQuery, rollout, headRollouts,
    layerMaps, mapOf, needsRows };
}
