import { act, cleanup, renderHook } from '@testing-library/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { useNews } from './events';
import { version } from './testing/samples';

class Source extends EventTarget {
  public static readonly CLOSED = 2;
  public static opened: Source[] = [];
  public readyState = 1;

  public constructor(public readonly url: string) {
    super();
    Source.opened.push(this);
  }

  public close(): void {
    this.readyState = Source.CLOSED;
  }

  public tell(name: string, data: unknown): void {
    act(() => void this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) })));
  }

  public fail(readyState: number): void {
    this.readyState = readyState;
    act(() => void this.dispatchEvent(new Event('error')));
  }
}

beforeEach(() => {
  Source.opened = [];
  vi.stubGlobal('EventSource', Source);
  vi.useFakeTimers();
});

afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function last(): Source {
  const source = Source.opened.at(-1);
  if (source === undefined) throw new Error('no stream was opened');
  return source;
}

test('states and versions come as they are told, a version once', () => {
  const { result } = renderHook(() => useNews('a b.h5'));
  expect(last().url).toBe('/api/files/a%20b.h5/events');
  last().tell('state', { name: 'a b.h5', last_cut: '7' });
  last().tell('version', version(1));
  last().tell('version', version(1));
  last().tell('version', version(2));
  expect(result.current.status?.last_cut).toBe('7');
  expect(result.current.versions.map((each) => each.version)).toEqual(['1', '2']);
});

test('a stream that the browser gives up is opened again', () => {
  const { result } = renderHook(() => useNews('run.h5'));
  last().fail(0);
  expect(result.current.isLost).toBe(true);
  vi.advanceTimersByTime(10_000);
  expect(Source.opened).toHaveLength(1); // The browser tries by itself.
  last().fail(Source.CLOSED);
  vi.advanceTimersByTime(10_000);
  expect(Source.opened).toHaveLength(2);
  last().tell('state', { name: 'run.h5', last_cut: '1' });
  expect(result.current.isLost).toBe(false);
});

test('another file begins with nothing, and the stream of the first is closed', () => {
  const { result, rerender } = renderHook(({ name }) => useNews(name), { initialProps: { name: 'a.h5' } });
  const first = last();
  first.tell('state', { name: 'a.h5', last_cut: '1' });
  rerender({ name: 'b.h5' });
  expect(result.current.status).toBeUndefined();
  expect(first.readyState).toBe(Source.CLOSED);
});
