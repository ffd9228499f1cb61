import { afterEach, expect, test, vi } from 'vitest';

import { allowed, ApiError, file, files, type FilesShown, onSignedOut, quoted, signIn, signOut } from './api';
import { answer, summaryOf } from './testing/samples';

afterEach(() => {
  vi.unstubAllGlobals();
});

const signal = new AbortController().signal;

test('a name is one piece of a path, whatever is in it', () => {
  expect(quoted('a b/@2?#.h5/events')).toBe('a%20b%2F%402%3F%23.h5%2Fevents');
});

test('the names come first, then page by page what a look at each file tells', async () => {
  const asked: string[] = [];
  vi.stubGlobal('fetch', (path: string) => {
    asked.push(path.replace('/api/files', ''));
    if (!path.includes('details')) {
      return Promise.resolve(answer({ files: ['a', 'b', 'c'].map((name) => summaryOf(name)), next_page_token: '' }));
    }
    const isSecond = path.includes('page_token=x%26y');
    const rows = isSecond ? [summaryOf('c')] : [summaryOf('a'), summaryOf('b', 'DIVERGED')];
    return Promise.resolve(answer({ files: rows, next_page_token: isSecond ? '' : 'x&y' }));
  });
  const states = (some: FilesShown) => some.files.map((each) => `${each.name} ${each.mirror?.state ?? '-'}`).join(', ');
  const told: string[] = [];
  const all = await files(signal, (part) => told.push(states(part)), undefined);
  expect(all.isWhole).toBe(true);
  expect(told).toEqual(['a -, b -, c -', 'a -, b MIRROR_STATE_DIVERGED, c -']);
  expect(states(all)).toBe('a -, b MIRROR_STATE_DIVERGED, c -');
  expect(asked.splice(0)).toEqual(['', '?details=true', '?details=true&page_token=x%26y']);
  await files(signal, () => undefined, all);
  expect(asked).toEqual(['?details=true', '?details=true&page_token=x%26y']);
});

test('an older server, which knows no details, lists names and states', async () => {
  const asked: string[] = [];
  vi.stubGlobal('fetch', (path: string) => {
    asked.push(path.replace('/api/files', ''));
    if (path.includes('details')) return Promise.resolve(answer({ message: 'unknown query "details"' }, 400));
    if (path.includes('state=')) return Promise.resolve(answer({ files: [summaryOf('b', 'DIVERGED')], next_page_token: '' }));
    const isSecond = path.endsWith('?page_token=x%26y');
    const names = isSecond ? ['c'] : ['a', 'b'];
    return Promise.resolve(answer({ files: names.map((name) => summaryOf(name)), next_page_token: isSecond ? '' : 'x&y' }));
  });
  const states = '?state=CONNECTED&state=DEGRADED&state=RESYNCING&state=IN_SYNC&state=DIVERGED';
  const rows = [
    ['a', undefined],
    ['b', 'MIRROR_STATE_DIVERGED'],
    ['c', undefined],
  ];
  const told = vi.fn();
  const first = await files(signal, told, undefined);
  expect(first.files.map((each) => [each.name, each.mirror?.state])).toEqual(rows);
  expect(first.isWhole).toBe(true);
  expect(asked.splice(0)).toEqual(['', '?page_token=x%26y', '?details=true', states]);
  const second = await files(signal, told, first);
  expect(second.files.map((each) => [each.name, each.mirror?.state])).toEqual(rows);
  expect(asked).not.toContain('?details=true');
  expect(told).toHaveBeenCalledTimes(1);
});

test('a list with details that fails otherwise is told', async () => {
  vi.stubGlobal('fetch', (path: string) =>
    Promise.resolve(
      path.includes('details') ? answer({ message: 'stopping' }, 503) : answer({ files: [], next_page_token: '' }),
    ),
  );
  await expect(files(signal, () => undefined, undefined)).rejects.toEqual(new ApiError(503, 'stopping'));
});

test('a list that does not end is cut off, and says so', async () => {
  const rows = Array.from({ length: 4000 }, (_, i) => summaryOf(String(i)));
  vi.stubGlobal('fetch', () => Promise.resolve(answer({ files: rows, next_page_token: 'more' })));
  const all = await files(signal, () => undefined, { files: [], isWhole: true });
  expect([all.files.length, all.isWhole]).toEqual([12_000, false]);
});

test('rights are asked for the file, whatever is in its name', async () => {
  const asked: string[] = [];
  vi.stubGlobal('fetch', (path: string) => {
    asked.push(path);
    return Promise.resolve(answer({ rights: ['read'], original: null }));
  });
  expect((await allowed('a b&c.h5', signal)).rights).toEqual(['read']);
  expect(asked).toEqual(['/api/rights?file=a+b%26c.h5']);
});

test('an error has the words of the server', async () => {
  vi.stubGlobal('fetch', () => Promise.resolve(answer({ message: 'run.h5 does not exist' }, 404)));
  await expect(file('run.h5', signal)).rejects.toEqual(new ApiError(404, 'run.h5 does not exist'));
});

test('an error that is no JSON is told by its number', async () => {
  vi.stubGlobal('fetch', () => Promise.resolve(new Response('<html>', { status: 502, statusText: 'Bad Gateway' })));
  await expect(file('run.h5', signal)).rejects.toThrow('The server answers 502 Bad Gateway');
});

test('a web process that is away is told as that', async () => {
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('Failed to fetch')));
  await expect(file('run.h5', signal)).rejects.toThrow('does not answer');
});

test('a session that has ended is told', async () => {
  const ended = vi.fn();
  onSignedOut(ended);
  vi.stubGlobal('fetch', () => Promise.resolve(answer({ message: 'sign in' }, 401)));
  await expect(file('run.h5', signal)).rejects.toThrow('sign in');
  expect(ended).toHaveBeenCalledTimes(1);
});

test('a sign-out has the value that the sign-in brought', async () => {
  const sent: (RequestInit & { path: string })[] = [];
  vi.stubGlobal('fetch', (path: string, init: RequestInit) => {
    sent.push({ ...init, path });
    return Promise.resolve(answer({ signed_in: true, csrf: 'value', server: 'node7', login: '', url: 'https://sso.example/out' }));
  });
  await signIn({ token: 'secret' });
  expect((await signOut()).url).toBe('https://sso.example/out');
  expect(sent[0]?.body).toBe('{"token":"secret"}');
  expect(sent[1]).toMatchObject({ path: '/api/logout', method: 'POST', headers: { 'X-H5mirror-CSRF': 'value' } });
});
