// The part of the package `ndarray-ops` that h5web uses; see ndarray.ts.

import type { View } from './ndarray';

// Copies `from` into `to`, of the same shape.
export function assign(to: View, from: View): boolean {
  copy(to, from, 0, to.offset, from.offset);
  return true;
}

function copy(to: View, from: View, axis: number, toPlace: number, fromPlace: number): void {
  const length = axis < to.dimension ? (to.shape[axis] ?? 0) : 1;
  const toStep = to.stride[axis] ?? 0;
  const fromStep = from.stride[axis] ?? 0;
  const isLast = axis + 1 >= to.dimension;
  for (let n = 0; n < length; n += 1) {
    if (isLast) to.data[toPlace + n * toStep] = from.data[fromPlace + n * fromStep];
    else copy(to, from, axis + 1, toPlace + n * toStep, fromPlace + n * fromStep);
  }
}
