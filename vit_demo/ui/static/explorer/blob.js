// @ts-check
// The explorer's data as they come from the server: a safetensors file with one explanation.

/** @type {Record<string, new (buffer: ArrayBuffer, offset: number, count: number) => Codes>} */
const TYPES = {
  U8: Uint8Array,
  I8: Int8Array,
  U16: Uint16Array,
  I16: Int16Array,
  F32: Float32Array,
};

/** A safetensors file: the header's length, the header as JSON, the arrays. What `payload.py` says
 * about the picture stands in the header's metadata.
 * @param {ArrayBuffer} buffer
 * @returns {Payload} */
export function decode(buffer) {
  const start = 8 + new DataView(buffer).getUint32(0, true); // of 64 bits, but never above 4 GB
  if (start > buffer.byteLength) throw new Error("not the explorer's data");
  const { __metadata__, ...entries } = JSON.parse(
    new TextDecoder().decode(new Uint8Array(buffer, 8, start - 8)),
  );
  const arrays = /** @type {any} */ ({});
  for (const [name, { dtype, shape, data_offsets }] of Object.entries(entries)) {
    const count = shape.reduce((/** @type {number} */ a, /** @type {number} */ b) => a * b, 1);
    arrays[name] = new TYPES[dtype](buffer, start + data_offsets[0], count);
  }
  return { ...JSON.parse(__metadata__.explanation), arrays };
}

/** @param {string} text */
export const fromBase64 = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
