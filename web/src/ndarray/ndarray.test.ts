import theirs from 'ndarray/ndarray.js';
import { assign as assignTheirs } from 'ndarray-ops/ndarray-ops.js';
import { describe, expect, it } from 'vitest';

import ours from './ndarray';
import { assign } from './ops';

const data = () => Float64Array.from({ length: 24 }, (_, n) => n);

// Each against the package that it replaces.
describe('the view of an array', () => {
  it.each([[[24]], [[4, 6]], [[2, 3, 4]], [[1, 24, 1]]])('has the elements of shape %j', (shape) => {
    const [mine, known] = [ours(data(), shape), theirs(data(), shape)];
    expect([mine.shape, mine.stride, mine.size, mine.dimension]).toEqual([
      known.shape,
      known.stride,
      known.size,
      known.dimension,
    ]);
    for (let n = 0; n < 24; n += 1) {
      const at = shape.map((length, axis) => (n * (axis + 1)) % length);
      expect(mine.get(...at)).toBe(known.get(...at));
    }
  });

  it.each([
    [[null, 1, null]],
    [[1, null, null]],
    [[null, null, 3]],
    [[1, 2, 3]],
    [[null, null, null]],
  ])('gives the part at %j', (part) => {
    const mine = ours(data(), [2, 3, 4]).pick(...part);
    const known = theirs(data(), [2, 3, 4]).pick(...part);
    expect([mine.shape, mine.stride, mine.offset]).toEqual([known.shape, known.stride, known.offset]);
  });

  it.each([
    [[1, 0, 2]],
    [[2, 0, 1]],
    [[0, 1, 2]],
  ])('is copied with its axes as %j', (axes) => {
    const [from, known] = [ours(data(), [2, 3, 4]).transpose(...axes), theirs(data(), [2, 3, 4]).transpose(...axes)];
    const [to, expected] = [ours(new Float64Array(24), from.shape), theirs(new Float64Array(24), known.shape)];
    assign(to, from);
    assignTheirs(expected, known);
    expect(to.data).toEqual(expected.data);
  });

  it('is copied where it is a single element, or empty', () => {
    const one = ours([0], []);
    assign(one, ours([7], []));
    expect(one.get()).toBe(7);
    const none = ours([], [0, 3]);
    expect(assign(none, ours([], [0, 3]))).toBe(true);
    expect(none.data).toEqual([]);
  });

  it.each([
    new Float32Array(2),
    new Uint8ClampedArray(2),
    new BigInt64Array(2),
    new BigUint64Array(2),
    ['a', 'b'],
  ])('knows its type', (values) => {
    expect(ours(values as never).dtype).toBe(theirs(values as never).dtype);
  });
});
