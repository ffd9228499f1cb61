// Views of arrays with several dimensions: what h5web uses of the package `ndarray`, which the build
// puts this in place of (vite.config.ts).
//
// That package writes JavaScript and compiles it, which the page's CSP forbids: no text becomes code.

type Values = Record<number, unknown> & { readonly length: number };

// Of Object.prototype.toString(), as the package names types.
function typeOf(data: Values): string {
  const name = Object.prototype.toString.call(data).slice('[object '.length, -1);
  if (name === 'Array') return 'array';
  if (name === 'Uint8ClampedArray') return 'uint8_clamped';
  return /^(Float|Int|Uint|BigInt|BigUint)[0-9]+Array$/.test(name)
    ? name.slice(0, -'Array'.length).toLowerCase()
    : 'generic';
}

// `data[offset + sum of index * stride]` is an element.
export class View {
  public readonly dtype: string;
  public readonly size: number;
  public readonly dimension: number;

  public constructor(
    public readonly data: Values,
    public readonly shape: number[],
    public readonly stride: number[],
    public readonly offset: number,
  ) {
    this.dtype = typeOf(data);
    this.size = shape.reduce((product, length) => product * length, 1);
    this.dimension = shape.length;
  }

  public index(...indices: number[]): number {
    let place = this.offset;
    for (let axis = 0; axis < this.stride.length; axis += 1) place += (indices[axis] ?? 0) * (this.stride[axis] ?? 0);
    return place;
  }

  public get(...indices: number[]): unknown {
    return this.data[this.index(...indices)];
  }

  // The same elements with axis `axes[n]` as the n-th.
  public transpose(...axes: number[]): View {
    const of = (values: number[]) => values.map((_, axis) => values[axes[axis] ?? axis] ?? 0);
    return new View(this.data, of(this.shape), of(this.stride), this.offset);
  }

  // The part at the given indices; null keeps an axis whole.
  public pick(...indices: (number | null)[]): View {
    const kept = this.shape.map((_, axis) => axis).filter((axis) => !isIndex(indices[axis]));
    const of = (values: number[]) => kept.map((axis) => values[axis] ?? 0);
    const first = indices.map((index) => (isIndex(index) ? index : 0));
    return new View(this.data, of(this.shape), of(this.stride), this.index(...first));
  }
}

function isIndex(index: number | null | undefined): index is number {
  return typeof index === 'number' && index >= 0;
}

// A view of all of `data`, the last axis the fastest. Without a shape it has one axis.
export default function ndarray(data: Values, shape: number[] = [data.length]): View {
  const stride: number[] = [];
  let step = 1;
  for (const length of [...shape].reverse()) {
    stride.unshift(step);
    step *= length;
  }
  return new View(data, [...shape], stride, 0);
}
