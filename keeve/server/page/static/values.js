// Values as records have them (docs/values.md), decoded to what the API gives of them in JSON.
// The one rule: what is not known is refused.

import { Broken } from "./proofs.js";

const text = new TextDecoder("utf-8", { fatal: true });
const base64 = (data) => btoa(Array.from(data, (each) => String.fromCharCode(each)).join(""));

class Reader {
  constructor(data, cell) {
    this.data = data;
    this.view = new DataView(data.buffer, data.byteOffset, data.length);
    this.at = 0;
    this.cell = cell;
    this.odd = false; // whether JSON may have it in other letters here than on the server: some numbers, keys in order
  }

  take(length) {
    if (this.at + length > this.data.length) throw new Broken("a value ends too early");
    this.at += length;
    return this.data.subarray(this.at - length, this.at);
  }

  size(width) {
    const at = this.at;
    this.take(width);
    return width === 1 ? this.view.getUint8(at) : width === 2 ? this.view.getUint16(at) : this.view.getUint32(at);
  }

  number(width, signed) {
    const at = this.at;
    this.take(width);
    if (width === 8) this.odd = true;
    if (width === 8) return Number(signed ? this.view.getBigInt64(at) : this.view.getBigUint64(at));
    if (width === 4) return signed ? this.view.getInt32(at) : this.view.getUint32(at);
    if (width === 2) return signed ? this.view.getInt16(at) : this.view.getUint16(at);
    return signed ? this.view.getInt8(at) : this.view.getUint8(at);
  }

  string(length) {
    return text.decode(this.take(length));
  }

  list(length) {
    const found = [];
    for (let n = 0; n < length; n += 1) found.push(this.value());
    return found;
  }

  object(length) {
    const found = [];
    for (let n = 0; n < length; n += 1) found.push([this.value(), this.value()]);
    this.odd ||= found.some(([key]) => /^\d+$/.test(key));
    return found.some(([key]) => key.startsWith("$")) ? { $object: found } : Object.fromEntries(found);
  }

  value() {
    const first = this.size(1);
    if (first <= 0x7f) return first;
    if (first >= 0xe0) return first - 0x100;
    if (first <= 0x8f) return this.object(first & 0x0f);
    if (first <= 0x9f) return this.list(first & 0x0f);
    if (first <= 0xbf) return this.string(first & 0x1f);
    switch (first) {
      case 0xc0: return null;
      case 0xc2: return false;
      case 0xc3: return true;
      case 0xc4: case 0xc5: case 0xc6: return { $bytes: base64(this.take(this.size(1 << (first - 0xc4)))) };
      case 0xc7: case 0xc8: case 0xc9: return this.extension(this.size(1 << (first - 0xc7)));
      case 0xcb: return this.float();
      case 0xcc: case 0xcd: case 0xce: case 0xcf: return this.number(1 << (first - 0xcc), false);
      case 0xd0: case 0xd1: case 0xd2: case 0xd3: return this.number(1 << (first - 0xd0), true);
      case 0xd4: case 0xd5: case 0xd6: case 0xd7: case 0xd8: return this.extension(1 << (first - 0xd4));
      case 0xd9: case 0xda: case 0xdb: return this.string(this.size(1 << (first - 0xd9)));
      case 0xdc: case 0xdd: return this.list(this.size(first === 0xdc ? 2 : 4));
      case 0xde: case 0xdf: return this.object(this.size(first === 0xde ? 2 : 4));
      default: throw new Broken("a value is of no known kind");
    }
  }

  float() {
    this.odd = true;
    const found = this.view.getFloat64(this.at);
    this.take(8);
    return Number.isFinite(found) ? found : { $float: Number.isNaN(found) ? "nan" : found > 0 ? "inf" : "-inf" };
  }

  extension(length) {
    const kind = this.size(1);
    const data = this.take(length);
    if (kind === 2) return { $symbol: text.decode(data) };
    if (kind === 6) {
      const [seq, after] = varint(data, 0);
      return this.cell(seq, varint(data, after)[0]);
    }
    if (kind === 7) return { $erased: true };
    this.odd = true;
    return { $ext: kind, data: base64(data) }; // refs, blobs and large numbers: not compared with what is shown
  }
}

function varint(data, at) {
  let [found, scale] = [0, 1];
  for (;;) {
    const each = data[at];
    if (each === undefined) throw new Broken("a number ends too early");
    found += (each & 0x7f) * scale;
    scale *= 128;
    at += 1;
    if (each < 0x80) return [found, at];
  }
}

// A value, and whether it is odd; `cell(seq, number)` gives the content of a cell.
export function decoded(data, cell) {
  const reader = new Reader(data, cell);
  const value = reader.value();
  if (reader.at !== data.length) throw new Broken("something stands behind a value");
  return { value, odd: reader.odd };
}

// The content of a cell: a salt, a type, and that.
export function contentOf(cell) {
  return cell[16] === 0 ? text.decode(cell.subarray(17)) : { $bytes: base64(cell.subarray(17)) };
}
