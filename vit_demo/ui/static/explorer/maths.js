// @ts-check
// The explorer's numbers: rows and matrices of attention. The definitions are those of `attention.py`,
// and a test compares the two. A vector has N numbers, prefix tokens first. A matrix is kept transposed,
// M[j * N + i] = A[i, j], so that v A is a row of dot products.

/** Through one layer, backwards, for `count` vectors: v = (1 - residual) v A + residual v.
 *
 * Four vectors and two rows of the matrix at a time, so that each number that is read is used often; the
 * four stand side by side, and where there are fewer, zeros stand for the others.
 * @param {Vector} v
 * @param {number} count
 * @param {Vector} M
 * @param {number} N
 * @param {number} residual */
export function throughLayer(v, count, M, N, residual) {
  const out = new Float32Array(v.length),
    four = new Float64Array(4 * N),
    sums = new Float64Array(8); // of the first row, then of the second
  for (let b = 0; b < count; b += 4) {
    const these = Math.min(4, count - b);
    four.fill(0);
    for (let c = 0; c < these; c++)
      for (let i = 0; i < N; i++) four[4 * i + c] = v[(b + c) * N + i];
    for (let j = 0; j < N; j += 2) {
      const other = Math.min(j + 1, N - 1), // the last row may come twice
        first = j * N,
        second = other * N;
      let [s, t, u, w, S, T, U, W] = [0, 0, 0, 0, 0, 0, 0, 0];
      for (let i = 0, at = 0; i < N; i++, at += 4) {
        const m = M[first + i],
          n = M[second + i],
          x = four[at],
          y = four[at + 1],
          z = four[at + 2],
          q = four[at + 3];
        s += m * x;
        t += m * y;
        u += m * z;
        w += m * q;
        S += n * x;
        T += n * y;
        U += n * z;
        W += n * q;
      }
      sums[0] = s;
      sums[1] = t;
      sums[2] = u;
      sums[3] = w;
      sums[4] = S;
      sums[5] = T;
      sums[6] = U;
      sums[7] = W;
      for (let c = 0; c < these; c++) {
        const of = (b + c) * N;
        out[of + j] = (1 - residual) * sums[c] + residual * v[of + j];
        out[of + other] = (1 - residual) * sums[4 + c] + residual * v[of + other];
      }
    }
  }
  return out;
}

/** A row sums to 1; of a row of zeros nothing was left, and the token stays where it is.
 * @param {Vector} row
 * @param {number} token */
export function normalise(row, token) {
  let total = 0;
  for (let j = 0; j < row.length; j++) total += row[j];
  if (total > 0) for (let j = 0; j < row.length; j++) row[j] /= total;
  else {
    row.fill(0);
    row[token] = 1;
  }
}

/** Hoare's selection: moves the k smallest of the first `count` numbers to the front, the largest
 * of them last, and returns that one.
 * @param {Float32Array} numbers
 * @param {number} count
 * @param {number} k */
export function selectSmallest(numbers, count, k) {
  let low = 0,
    high = count - 1;
  while (low < high) {
    const pivot = numbers[(low + high) >> 1];
    let i = low,
      j = high;
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
 * and only the few numbers near it are compared.
 * @param {number} N
 * @param {[number, number] | null} readout */
export function discarder(N, readout) {
  const [start, stop] = readout || [0, 0],
    LEADING = 21; // sign, exponent, two bits of the fraction
  const free = new Float32Array(N),
    bits = new Uint32Array(free.buffer),
    near = new Float32Array(N);
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
      let leading = 0,
        left = gone,
        close = 0;
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

/**
 * @param {Vector} all
 * @param {number} N
 * @param {string} how */
export function acrossHeads(all, N, how) {
  const out = all.slice(0, N),
    count = all.length / N;
  for (let at = 1; at < count; at++) {
    for (let j = 0; j < N; j++) {
      const x = all[at * N + j];
      out[j] =
        how === "mean" ? out[j] + x : how === "max" ? Math.max(out[j], x) : Math.min(out[j], x);
    }
  }
  if (how === "mean") for (let j = 0; j < N; j++) out[j] /= count;
  return out;
}

/** The maps of some heads (count x N), from those of all.
 * @param {Vector} all
 * @param {number} N
 * @param {number[]} heads */
export function headsOf(all, N, heads) {
  const out = new Float32Array(heads.length * N);
  heads.forEach((head, at) => {
    out.set(all.subarray(head * N, (head + 1) * N), at * N);
  });
  return out;
}

/** What sets some heads apart (count x N): their maps minus the mean over all heads.
 * @param {Vector} all
 * @param {number} N
 * @param {number[]} heads */
export function specialPart(all, N, heads) {
  const mean = acrossHeads(all, N, "mean");
  return headsOf(all, N, heads).map((x, at) => x - mean[at % N]);
}

/** How widely a map spreads over the patches, in bits; of a signed map, its size counts.
 * @param {ArrayLike<number>} values */
export function entropy(values) {
  let total = 0,
    sum = 0;
  for (let k = 0; k < values.length; k++) total += Math.abs(values[k]);
  for (let k = 0; k < values.length; k++) {
    const share = Math.abs(values[k]) / total;
    if (share > 0) sum -= share * Math.log2(share);
  }
  return sum;
}
