import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';

import type { Diff } from '../findings';
import { Looked } from '../looked';
import { answer, change, version } from '../testing/samples';
import { ChangeFlow } from './ChangeFlow';
import { Differences } from './Differences';
import { DiffTree } from './DiffTree';
import { ObjectPanel } from './ObjectPanel';
import { VersionPanel } from './VersionPanel';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const nothing = () => undefined;

function lookedAt(path: string): Looked {
  const looked = new Looked();
  looked.set(path);
  return looked;
}

function diffOf(changes: Diff['changes'], more: Partial<Diff> = {}): Diff {
  return { old: '1', new: '2', changes, equal: changes.length === 0, all_compared: true, is_whole: true, ...more };
}

// Answers each call by the last part of its path, and notes what was sent.
function stub(answers: Record<string, unknown>, status = 200): { url: string; body: unknown }[] {
  const asked: { url: string; body: unknown }[] = [];
  vi.stubGlobal('fetch', (url: string, init: RequestInit) => {
    const call = url.split('?')[0]?.split('/').pop() ?? '';
    asked.push({ url, body: typeof init.body === 'string' ? JSON.parse(init.body) : undefined });
    return Promise.resolve(answer(answers[call], status));
  });
  return asked;
}

const TAG = { what: 'tag', file: 'run.h5', version: '2', tag: 'raw' } as const;

test('a change is shown first, then asked, then made as it was shown', async () => {
  const asked = stub({ changes: { expected: '1', says: 'It would move.' } });
  const done = vi.fn();
  render(<ChangeFlow label="Tag version 2" wanted={TAG} onDone={done} />);
  fireEvent.click(screen.getByRole('button', { name: 'Tag version 2…' }));
  expect((await screen.findByRole('group')).textContent).toContain('It would move.');
  expect(asked.map((each) => each.body)).toEqual([{ ...TAG, preview: true }]);
  expect(done).not.toHaveBeenCalled();
  fireEvent.click(screen.getByRole('button', { name: 'Tag version 2 now' }));
  await vi.waitFor(() => expect(done).toHaveBeenCalledExactlyOnceWith('It would move.'));
  expect(asked[1]?.body).toEqual({ ...TAG, preview: false, expected: '1' });
  expect(screen.queryByRole('group')).toBeNull();
});

test('who cancels has changed nothing', async () => {
  const asked = stub({ changes: { expected: '1', says: 'It would move.' } });
  render(<ChangeFlow label="Tag version 2" wanted={TAG} onDone={nothing} />);
  fireEvent.click(screen.getByRole('button', { name: 'Tag version 2…' }));
  fireEvent.click(await screen.findByRole('button', { name: 'Cancel' }));
  expect(asked).toHaveLength(1);
  expect(document.activeElement?.textContent).toBe('Tag version 2…');
});

test('a restore that is refused says why, and how it is done elsewhere', async () => {
  stub({ changes: { message: 'run.h5 is the mirror of lab7:/data/run.h5' } }, 409);
  const wanted = { what: 'restore', file: "it's.h5", version: '1', path: '/a b', replace: true } as const;
  render(<ChangeFlow label="Restore" wanted={wanted} onDone={nothing} />);
  fireEvent.click(screen.getByRole('button', { name: 'Restore…' }));
  expect((await screen.findByRole('alert')).textContent).toContain('the mirror of lab7');
  expect(screen.getByText(/^h5mirror/).textContent).toBe("h5mirror restore 'it'\\''s.h5@1:/a b' --replace");
});

test('what a visitor may not do is not there, and the missing right is named', () => {
  const panel = (rights: string[] | undefined) => (
    <VersionPanel
      name="run.h5"
      version="1"
      about={version(1, { tags: ['raw'] })}
      rights={rights}
      isNewest={false}
      onChanged={nothing}
    />
  );
  const missing = () => screen.queryAllByText(/^To .* you need the right/).map((each) => each.textContent);
  const { rerender } = render(panel(undefined)); // They are not known yet.
  expect(screen.queryAllByRole('button')).toHaveLength(0);
  expect(missing()).toEqual([]);
  rerender(panel(['read']));
  expect(screen.getByRole('link', { name: 'Download version 1' })).toBeTruthy();
  expect(screen.queryAllByRole('button')).toHaveLength(0);
  expect(missing()).toEqual([
    'To change tags you need the right write to this file, which you do not have.',
    'To roll back to this version you need the right restore to this file, which you do not have.',
  ]);
  rerender(panel(['read', 'write']));
  expect(screen.getAllByRole('button').map((each) => each.textContent)).toEqual(['Tag version 1…', 'Remove the tag raw…']);
  rerender(panel(['read', 'restore']));
  expect(screen.getAllByRole('button').map((each) => each.textContent)).toEqual(['Roll back to version 1…']);
  rerender(panel(['read', 'write', 'restore']));
  expect(missing()).toEqual([]);
});

test('an object is restored only with the right to write the file, which is named where it is missing', () => {
  const panel = (rights: string[], shown = '1') => (
    <ObjectPanel name="run.h5" version={shown} looked={lookedAt('/a')} rights={rights} original={null} onChoose={nothing} onChanged={nothing} />
  );
  const { rerender } = render(panel(['read', 'write']));
  expect(screen.getByRole('button', { name: 'Restore /a of version 1…' })).toBeTruthy();
  rerender(panel(['read', 'restore']));
  expect(screen.queryByRole('button', { name: /^Restore/ })).toBeNull();
  expect(screen.getByText(/^To restore an object/).textContent).toContain('the right write to this file');
  rerender(panel(['read'], '')); // Of the live file there is nothing to restore.
  expect(screen.queryByText(/^To restore an object/)).toBeNull();
});

test('an original elsewhere is named with the command, in place of a button', () => {
  const original = { host: 'lab7', path: '/data/my run.h5' };
  render(
    <ObjectPanel name="run.h5" version="1" looked={lookedAt('/a')} rights={['write']} original={original} onChoose={nothing} onChanged={nothing} />,
  );
  expect(screen.queryByRole('button', { name: /^Restore/ })).toBeNull();
  expect(screen.queryByRole('alert')).toBeNull();
  expect(screen.getByText(/^The original is/).textContent).toContain('lab7:/data/my run.h5, which this page does not write');
  expect(screen.getByText(/^h5mirror/).textContent).toBe("h5mirror restore '/data/my run.h5@1:/a'");
  fireEvent.click(screen.getByLabelText('Replace what is there now'));
  expect(screen.getByText(/^h5mirror/).textContent).toBe("h5mirror restore '/data/my run.h5@1:/a' --replace");
});

test('the panel follows the selection, also after a path was typed, and offers nothing before there is one', () => {
  const looked = new Looked();
  render(<ObjectPanel name="run.h5" version="1" looked={looked} rights={['write']} original={null} onChoose={nothing} onChanged={nothing} />);
  const offered = () => screen.queryAllByRole('button', { name: /^Restore/ }).map((each) => each.textContent);
  const select = (path: string) => act(() => looked.set(path));
  const type = (path: string) => fireEvent.change(screen.getByLabelText('Path'), { target: { value: path } });
  expect(offered()).toEqual([]);
  type('/typed');
  select('/a');
  expect(offered()).toEqual(['Restore /typed of version 1…']); // It was typed while the viewer was loading.
  select('/a/b');
  expect(offered()).toEqual(['Restore /a/b of version 1…']);
  type('/typed');
  select('/a');
  expect(offered()).toEqual(['Restore /a of version 1…']);
  select('');
  expect(offered()).toEqual([]);
});

test('a text that is no tag cannot be sent', () => {
  render(<VersionPanel name="run.h5" version="1" about={undefined} rights={['write']} isNewest onChanged={nothing} />);
  const button = screen.getByRole<HTMLButtonElement>('button', { name: 'Tag version 1…' });
  for (const [tag, isNone] of [['12', true], ['a b', true], ['', true], ['a-1', false]] as const) {
    fireEvent.change(screen.getByLabelText('Tag'), { target: { value: tag } });
    expect(screen.getByRole<HTMLButtonElement>('button', { name: button.textContent }).disabled, tag).toBe(isNone);
  }
});

test('differences go from the older to the newer version, whichever is shown', async () => {
  const asked = stub({ diff: diffOf([change('/a', { what: 'attribute', name: 'unit', old: 'K', new: 'C' })]) });
  render(<Differences name="run.h5" versions={[version(2), version(1)]} chosen="1" />);
  fireEvent.change(screen.getByLabelText('Compare version 1 with'), { target: { value: '2' } });
  expect(await screen.findByText('attribute unit: K → C')).toBeTruthy();
  expect(asked[0]?.url).toBe('/api/diff?file=run.h5&old=1&new=2');
  expect(screen.getByRole('heading', { name: 'From version 1 to version 2' })).toBeTruthy();
});

test('a changed dataset shows where it differs, and its values', async () => {
  const found = {
    old_shape: [4],
    shape: [4],
    compared: [4],
    is_whole: true,
    differing: 1,
    grid: [[0, 1, 0, 0]],
    values: [{ index: [1], old: '1.0', new: '2.0' }],
  };
  stub({ compare: found });
  render(<DiffTree name="run.h5" diff={diffOf([change('/a', { what: 'data', elements: 1, region_count: 1 })])} />);
  fireEvent.click(screen.getByRole('button', { name: 'Show where /a differs' }));
  expect(await screen.findByRole('img', { name: 'Where /a differs' })).toBeTruthy();
  expect(screen.getByRole('row', { name: '[1] 1.0 2.0' })).toBeTruthy();
});

test('of a large dataset the first changed chunk is compared', async () => {
  const regions = [{ offset: [4], shape: [2], elements: 1 }];
  const asked = stub({ compare: { old_shape: [9], shape: [9], compared: [9], is_whole: false, differing: 0, grid: null, values: [] } });
  const data = change('/a', { what: 'data', elements: 1, region_count: 7, is_chunked: true, regions });
  render(<DiffTree name="run.h5" diff={diffOf([data])} />);
  fireEvent.click(screen.getByRole('button', { name: 'Show where /a differs' }));
  expect(await screen.findByText(/the first 1 of 7 changed chunks, and elements of the first one/)).toBeTruthy();
  expect(asked[1]?.url).toContain('offset=4&extent=2');
});

test('an answer that makes no sense leaves the rest of the page', async () => {
  vi.spyOn(console, 'error').mockImplementation(nothing);
  stub({ compare: { shape: 'x', is_whole: true } });
  render(<DiffTree name="run.h5" diff={diffOf([change('/a', { what: 'data', elements: 1, region_count: 1 })])} />);
  fireEvent.click(screen.getByRole('button', { name: 'Show where /a differs' }));
  expect((await screen.findByRole('alert')).textContent).toContain('cannot be shown');
  expect(screen.getByRole('button', { name: 'Hide where /a differs' })).toBeTruthy();
});

test('a list that was cut off says so', () => {
  render(<DiffTree name="run.h5" diff={diffOf([change('/a', { what: 'shape' })], { is_whole: false, all_compared: false })} />);
  expect(screen.getByRole('status').textContent).toBe('The first 1 difference; `h5mirror diff` lists all.');
});

test('an object shows its history, from which a version is chosen', async () => {
  const found = { version: '3', time: '2026-11-28T12:00:00Z', user: 'anna', comment: '', tags: [] };
  stub({
    history: {
      events: [{ event: 'changed', version: found, before: 2, object: 'dataset', note: '', changes: [change('/a', { what: 'shape', old: '(1)', new: '(2)' })] }],
      versions_seen: 3,
      is_complete: true,
    },
    blame: { attributes: [{ name: 'unit', value: '"K"', version: found, or_earlier: true }] },
  });
  const choose = vi.fn();
  render(<ObjectPanel name="run.h5" version="" looked={lookedAt('/a')} rights={['read']} original={null} onChoose={choose} onChanged={nothing} />);
  fireEvent.click(screen.getByRole('button', { name: 'Show its history' }));
  fireEvent.click(await screen.findByRole('button', { name: 'Version 3' }));
  expect(choose).toHaveBeenCalledWith('3');
  expect(screen.getByText('shape: (1) → (2)')).toBeTruthy();
  expect(await screen.findByRole('row', { name: 'unit "K" 3 or earlier anna' })).toBeTruthy();
});
