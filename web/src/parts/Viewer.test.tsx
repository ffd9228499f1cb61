import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { type ReactNode, useEffect, useState } from 'react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import type { Fetcher } from '../fetcher';
import type { Shown } from '../model';
import { answer } from '../testing/samples';
import Viewer from './Viewer';

let mounts = 0;

// h5web, as far as the viewer counts on it: it asks for the root by each new fetcher.
vi.mock('@h5web/app', () => ({
  H5GroveProvider: ({ fetcher, filepath, children }: { fetcher: Fetcher; filepath: string; children: ReactNode }) => {
    useEffect(() => {
      fetcher('/meta', { file: filepath, path: '/' }).catch(() => undefined);
    }, [fetcher, filepath]);
    return children;
  },
  App: ({ initialPath }: { initialPath: string }) => {
    const [mount] = useState(() => (mounts += 1));
    const [path, setPath] = useState(initialPath);
    return (
      <div data-selected-path={path}>
        mount {mount}
        {['/a', '/a/b'].map((each) => (
          <button key={each} type="button" onClick={() => setPath(each)}>
            {each}
          </button>
        ))}
      </div>
    );
  },
  hasArrayShape: () => true,
  hasNumericType: () => true,
}));

let asked: string[] = [];
let status = 200;
let isHidden = false;

beforeEach(() => {
  mounts = 0;
  asked = [];
  status = 200;
  isHidden = false;
  vi.stubGlobal('fetch', (url: string) => {
    asked.push(new URLSearchParams(url.split('?')[1]).get('cut') ?? 'version');
    return Promise.resolve(answer({ message: 'gone' }, status));
  });
  vi.spyOn(document, 'hidden', 'get').mockImplementation(() => isHidden);
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function cut(number: string): Shown {
  return { kind: 'cut', cut: number };
}

function viewer(shown: Shown) {
  return <Viewer name="run.h5" shown={shown} initialPath="/" />;
}

test('a newer cut comes without h5web being mounted anew, and those between are left out', async () => {
  const { rerender } = render(viewer(cut('1')));
  for (const number of ['2', '3', '4']) rerender(viewer(cut(number)));
  expect(await screen.findByText('Cut 4')).toBeTruthy();
  expect(screen.getByText(/^mount 1/)).toBeTruthy();
  expect(asked).toEqual(['1', '2', '4']);
});

test('each selection is told, none by a request, and another version keeps it', async () => {
  const looked = vi.fn();
  const shown = (state: Shown) => <Viewer name="run.h5" shown={state} initialPath="/" onLooked={looked} />;
  const told = () => looked.mock.calls.map(([path]) => path as string);
  const { rerender, unmount } = render(shown(cut('1')));
  expect(told()).toEqual(['/']);
  for (const path of ['/a', '/a/b', '/a']) {
    fireEvent.click(screen.getByRole('button', { name: path }));
    await vi.waitFor(() => expect(told().at(-1)).toBe(path));
  }
  rerender(shown({ kind: 'version', version: '7' }));
  expect(await screen.findByText('Version 7')).toBeTruthy();
  expect(told()).toEqual(['/', '/a', '/a/b', '/a']);
  fireEvent.click(screen.getByRole('button', { name: '/a/b' }));
  await vi.waitFor(() => expect(told().at(-1)).toBe('/a/b'));
  unmount();
  expect(told().at(-1)).toBe('');
});

test('a page that nobody sees asks for no cut, and for the newest once it is seen', async () => {
  const { rerender } = render(viewer(cut('1')));
  await act(() => Promise.resolve());
  isHidden = true;
  act(() => void document.dispatchEvent(new Event('visibilitychange')));
  rerender(viewer(cut('2')));
  rerender(viewer(cut('3')));
  await act(() => Promise.resolve());
  expect(asked).toEqual(['1']);
  isHidden = false;
  act(() => void document.dispatchEvent(new Event('visibilitychange')));
  expect(await screen.findByText('Cut 3')).toBeTruthy();
  expect(asked).toEqual(['1', '3']);
});

test('a cut that is not held any more is opened anew, once', async () => {
  status = 410;
  render(viewer(cut('1')));
  await vi.waitFor(() => expect(asked).toEqual(['1', '1']));
  await act(() => new Promise((resolve) => setTimeout(resolve, 50)));
  expect(asked).toEqual(['1', '1']);
});

test('a version that is being loaded is told', async () => {
  const { rerender } = render(viewer(cut('1')));
  await act(() => Promise.resolve());
  rerender(viewer({ kind: 'version', version: '7' }));
  expect(screen.getByRole('status').textContent).toBe('Cut 1; loading version 7…');
  expect(await screen.findByText('Version 7')).toBeTruthy();
});
