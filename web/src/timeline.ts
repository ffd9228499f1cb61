// Where versions lie on a line of time, and what a zoom shows of it.

import type { Version } from './model';

// Moments in milliseconds; `to` is later than `from`.
export interface Span {
  from: number;
  to: number;
}

const SHORTEST_MS = 1000;

export function timeOf(version: Version): number {
  return version.server_time === undefined ? 0 : Date.parse(version.server_time);
}

// All versions, with a margin at both ends.
export function whole(versions: readonly Version[]): Span {
  const times = versions.map(timeOf);
  const from = Math.min(...times);
  const to = Math.max(...times);
  if (times.length === 0) return { from: 0, to: SHORTEST_MS };
  const margin = Math.max(SHORTEST_MS, to - from) * 0.03;
  return { from: from - margin, to: to + margin };
}

// `factor` below 1 zooms in. The middle stays in its place, as far as the whole span allows.
export function zoomed(span: Span, factor: number, middle: number, limits: Span): Span {
  const length = Math.min(limits.to - limits.from, Math.max(SHORTEST_MS, (span.to - span.from) * factor));
  const from = Math.min(Math.max(middle - length / 2, limits.from), limits.to - length);
  return { from, to: from + length };
}

// By a share of what is shown: -1 is one screen to the left.
export function moved(span: Span, screens: number, limits: Span): Span {
  const length = span.to - span.from;
  const from = Math.min(Math.max(span.from + screens * length, limits.from), limits.to - length);
  return { from, to: from + length };
}

export function within(versions: readonly Version[], span: Span): Version[] {
  return versions.filter((each) => timeOf(each) >= span.from && timeOf(each) <= span.to);
}

export interface Bar {
  version: string;
  x: number; // 0..1
  height: number; // 0..1: the bytes that changed, by their logarithm
}

// At most one for each of `columns`: the largest, and so the one that is chosen there.
export function bars(versions: readonly Version[], span: Span, columns: number): Bar[] {
  const largest = Math.max(1, ...versions.map((each) => Number(each.changed_bytes)));
  const found = new Map<number, Bar>();
  for (const each of within(versions, span)) {
    const x = (timeOf(each) - span.from) / (span.to - span.from);
    const height = 0.15 + 0.85 * (Math.log1p(Number(each.changed_bytes)) / Math.log1p(largest));
    const column = Math.floor(x * columns);
    const other = found.get(column);
    if (other === undefined || other.height < height) found.set(column, { version: each.version, x, height });
  }
  return [...found.values()];
}
