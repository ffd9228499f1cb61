// The packages themselves, for tests: what the build puts in their place has other names.

declare module 'ndarray/ndarray.js' {
  export { default } from 'ndarray';
}

declare module 'ndarray-ops/ndarray-ops.js' {
  import type { NdArray } from 'ndarray';

  export function assign(to: NdArray, from: NdArray): boolean;
}
