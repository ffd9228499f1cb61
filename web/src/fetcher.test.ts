import { afterEach, expect, test, vi } from 'vitest';

import { GoneError, StateFetcher } from './fetcher';
import { answer } from './testing/samples';

afterEach(() => {
  vi.unstubAllGlobals();
});

// Answers each call with its own address, and notes it.
function stub(statusOf: (url: string) => number = () => 200): string[] {
  const asked: string[] = [];
  vi.stubGlobal('fetch', (url: string) => {
    asked.push(url);
    const status = statusOf(url);
    return Promise.resolve(answer(status === 200 ? { url } : { message: `no: ${status}` }, status));
  });
  return asked;
}

const META = { file: 'run.h5', path: '/' };

function text(buffer: ArrayBuffer): string {
  return new TextDecoder().decode(buffer);
}

test('each call names the state', async () => {
  const asked = stub();
  await new StateFetcher({ kind: 'version', version: '3' }).fetch('/meta', META);
  await new StateFetcher({ kind: 'cut', cut: '40' }).fetch('/meta', META);
  expect(asked).toEqual(['/meta?file=run.h5&path=%2F&version=3', '/meta?file=run.h5&path=%2F&cut=40']);
});

test('a group that has more than its answer is told', async () => {
  const headers = { 'H5mirror-Left-Out': '99000' };
  vi.stubGlobal('fetch', () => Promise.resolve(new Response('{}', { headers })));
  const told = vi.fn();
  const fetcher = new StateFetcher({ kind: 'version', version: '3' }, undefined, told);
  await fetcher.fetch('/meta', { file: 'run.h5', path: '/many' });
  expect(told).toHaveBeenCalledExactlyOnceWith('/many', 99000);
});

test('what was asked of one state is there for the next, once', async () => {
  const asked = stub();
  const first = new StateFetcher({ kind: 'cut', cut: '1' });
  await first.fetch('/meta', META);
  const second = await first.prepare({ kind: 'cut', cut: '2' });
  expect(asked).toHaveLength(2);
  expect(text(await second.fetch('/meta', META))).toContain('cut=2');
  expect(asked).toHaveLength(2);
  await second.fetch('/meta', META);
  expect(asked).toHaveLength(3);
});

test('what the present state was not asked is not asked ahead', async () => {
  const asked = stub();
  const first = new StateFetcher({ kind: 'cut', cut: '1' });
  await first.fetch('/meta', META);
  await first.fetch('/data', { ...META, path: '/a' });
  const second = await first.prepare({ kind: 'cut', cut: '2' });
  await second.fetch('/meta', META); // /a is not shown any more.
  asked.length = 0;
  await second.prepare({ kind: 'cut', cut: '3' });
  expect(asked).toEqual(['/meta?file=run.h5&path=%2F&cut=3']);
});

test('a preparation survives an object that is not there any more, and the call then says so', async () => {
  stub((url) => (url.includes('cut=2') ? 404 : 200));
  const first = new StateFetcher({ kind: 'cut', cut: '1' });
  await first.fetch('/meta', META);
  const second = await first.prepare({ kind: 'cut', cut: '2' });
  await expect(second.fetch('/meta', META)).rejects.toThrow('no: 404');
});

test('a cut that is gone is told', async () => {
  stub(() => 410);
  const gone = vi.fn();
  const fetcher = new StateFetcher({ kind: 'cut', cut: '1' }, gone);
  await expect(fetcher.fetch('/meta', META)).rejects.toThrow(GoneError);
  expect(gone).toHaveBeenCalledTimes(1);
});

test('a cancelled call fails with the reason that h5web gave', async () => {
  const reason = new Error('entity changed');
  const controller = new AbortController();
  vi.stubGlobal('fetch', () => Promise.reject(new DOMException('aborted', 'AbortError')));
  controller.abort(reason);
  const fetcher = new StateFetcher({ kind: 'cut', cut: '1' });
  await expect(fetcher.fetch('/data', META, { abortSignal: controller.signal })).rejects.toBe(reason);
});
