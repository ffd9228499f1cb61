import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import type { FileStatus } from '../model';
import { answer, mirror, version } from '../testing/samples';
import { FilePage } from './FilePage';

vi.mock('../parts/Viewer', () => ({ default: () => <p>viewer</p> }));

class Silent {
  public readonly readyState = 0;
  public addEventListener(): void {
    // Nothing is told.
  }
  public close(): void {
    // There is nothing to end.
  }
}

beforeEach(() => vi.stubGlobal('EventSource', Silent));

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const WRITER = { claimed_user: 'anna', host: 'lab7', program: 'h5mirror', pid: 1 };

function statusOf(more: Partial<FileStatus>): FileStatus {
  return {
    name: 'run.h5',
    size_bytes: '4096',
    last_cut: '20',
    durable_cut: '20',
    newest_version: version(2, { writer: WRITER }),
    version_count: '1',
    stage_bytes: '0',
    history_bytes: '0',
    history_notice: '',
    owner: '',
    origin: { host: 'lab7', path: '/data/run.h5' },
    ...more,
  };
}

function show(status: FileStatus) {
  vi.stubGlobal('fetch', (url: string) => {
    if (url.includes('/versions')) return Promise.resolve(answer({ versions: [], next_page_token: '' }));
    if (url.includes('/rights')) return Promise.resolve(answer({ rights: [], original: null }));
    return Promise.resolve(answer(status));
  });
  render(<FilePage route={{ page: 'file', name: 'run.h5', version: '', path: '/' }} />);
}

test('a file that is not there is told by one message', async () => {
  vi.stubGlobal('fetch', () => Promise.resolve(answer({ message: 'no file none.h5' }, 404)));
  render(<FilePage route={{ page: 'file', name: 'none.h5', version: '', path: '/' }} />);
  expect((await screen.findByRole('alert')).textContent).toBe('no file none.h5');
  expect(screen.queryAllByRole('status')).toEqual([]);
  expect(screen.queryAllByText(/rights|no state|may change/)).toEqual([]);
});

test('a version that was made on the server is said to be newer than the local file, with the way out', async () => {
  show(statusOf({}));
  expect(await screen.findByText('newer than the local file')).toBeTruthy();
  expect(screen.getByText('h5mirror recover /data/run.h5')).toBeTruthy();
  expect(screen.getByText(/^1 version,/)).toBeTruthy();
  expect(screen.queryAllByRole('alert')).toEqual([]);
});

test.each([
  ['a program made it', { newest_version: version(2, { writer: { ...WRITER, program: 'python3' } }) }],
  ['it was closed here', { mirror: mirror('IN_SYNC') }],
  ['it has no local file', { origin: { host: 'lab7', path: '(mode=remote, session 3f2a91c0)' } }],
  ['a newer cut is there', { last_cut: '21' }],
])('a version is not called newer than the local file where %s', async (_, more) => {
  show(statusOf(more));
  expect(await screen.findByText('State')).toBeTruthy();
  expect(screen.queryByText('newer than the local file')).toBeNull();
  expect(screen.queryByText(/^h5mirror recover/)).toBeNull();
});
