import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';

import { Timeline } from '../parts/Timeline';
import { answer, summaryOf, version } from '../testing/samples';
import { FilesPage, found } from './FilesPage';
import { SignIn } from './SignIn';

const WRITER = { claimed_user: '', host: 'lab7', program: 'python3', pid: 1 };

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

test('a search needs all its words, and what needs somebody comes first', () => {
  const all = [summaryOf('lab/a.h5', 'IN_SYNC'), summaryOf('lab/b.h5', 'DIVERGED'), summaryOf('home/a.h5')];
  expect(found(all, 'A.h5 lab', '').map((each) => each.name)).toEqual(['lab/a.h5']);
  expect(found(all, '', '').map((each) => each.name)).toEqual(['lab/b.h5', 'home/a.h5', 'lab/a.h5']);
  expect(found(all, '', 'IN_SYNC').map((each) => each.name)).toEqual(['lab/a.h5']);
});

test('the page lists files with their states, and says what to do', async () => {
  vi.stubGlobal('fetch', () =>
    Promise.resolve(answer({ files: [summaryOf('run.h5', 'DIVERGED'), summaryOf('ok.h5', 'IN_SYNC')], next_page_token: '' })),
  );
  render(<FilesPage />);
  expect(await screen.findByText('2 of 2 files')).toBeTruthy();
  expect(screen.getByRole('link', { name: 'run.h5' }).getAttribute('href')).toBe('/files/run.h5');
  expect(screen.getByRole('region', { name: 'What needs you' }).textContent).toContain('h5mirror resync run.h5');
  fireEvent.change(screen.getByRole('searchbox', { name: 'Name' }), { target: { value: 'ok' } });
  expect(await screen.findByText('1 of 2 files')).toBeTruthy();
});

test('a row tells who writes, how fast, and how large the history is', async () => {
  const row = summaryOf('run.h5', 'CONNECTED', {
    last_writer: { writer: WRITER, verified_user: 'anna', is_writing: true },
    recent_writes: { interval_seconds: 5, received_bytes: ['0', '5120', '0'] },
    history_bytes: '3145728',
  });
  const others = [summaryOf('idle.h5', undefined, { history_bytes: '0' }), summaryOf('dark.h5')];
  vi.stubGlobal('fetch', () => Promise.resolve(answer({ files: [row, ...others], next_page_token: '' })));
  render(<FilesPage />);
  const cells = (await screen.findByRole('row', { name: /run\.h5/ })).textContent;
  expect(cells).toContain('anna@lab7 python3 (writing now)');
  expect(cells).toContain('3.0 MiB');
  expect(screen.getAllByRole('img')).toHaveLength(1);
  expect(screen.getByRole('row', { name: /idle\.h5/ }).textContent).toContain('none lately');
  expect(screen.getByRole('row', { name: /dark\.h5/ }).textContent).not.toContain('none lately');
});

test('a server that is away is told in words', async () => {
  vi.stubGlobal('fetch', () => Promise.resolve(answer({ message: 'node7: it does not answer' }, 503)));
  render(<FilesPage />);
  expect((await screen.findByRole('alert')).textContent).toBe('node7: it does not answer');
  expect(screen.queryByText('Loading…')).toBeNull();
});

test('the form says why it is there', () => {
  const { rerender } = render(<SignIn login="" why="the server asks for a token" onSignedIn={vi.fn()} />);
  expect(screen.getByRole('status').textContent).toBe('the server asks for a token');
  rerender(<SignIn login="" why="" onSignedIn={vi.fn()} />);
  expect(screen.queryByRole('status')).toBeNull();
});

test('a token that the server refuses is told, and stays to be mended', async () => {
  vi.stubGlobal('fetch', () => Promise.resolve(answer({ message: 'unknown token' }, 401)));
  const signedIn = vi.fn();
  render(<SignIn login="" why="" onSignedIn={signedIn} />);
  fireEvent.change(screen.getByLabelText('Token'), { target: { value: ' wrong ' } });
  fireEvent.click(screen.getByRole('button', { name: 'Sign in' }));
  expect((await screen.findByRole('alert')).textContent).toBe('unknown token');
  expect(signedIn).not.toHaveBeenCalled();
});

test('a login is begun at the issuer only where there is one, and comes back to the page that was wanted', async () => {
  const sent: string[] = [];
  vi.stubGlobal('fetch', (path: string, init: RequestInit) => {
    sent.push(`${path} ${init.body as string}`);
    return Promise.resolve(answer({ message: 'the issuer does not answer' }, 503));
  });
  const { rerender } = render(<SignIn login="" why="" onSignedIn={vi.fn()} />);
  expect(screen.queryByRole('button', { name: /Log in/ })).toBeNull();
  rerender(<SignIn login="sso.example" why="" onSignedIn={vi.fn()} />);
  history.replaceState(null, '', '/files/run.h5?version=2');
  fireEvent.click(screen.getByRole('button', { name: 'Log in at sso.example' }));
  expect((await screen.findByRole('alert')).textContent).toBe('the issuer does not answer');
  expect(sent).toEqual(['/api/login {"to":"/files/run.h5?version=2"}']);
});

test('the timeline is a group of radio buttons with who, how large, tags and comments', () => {
  const choose = vi.fn();
  const versions = [version(2, { tags: ['raw'], comment: 'calibrated', writer: WRITER }), version(1)];
  render(<Timeline versions={versions} chosen="" isLive onChoose={choose} />);
  const radio = screen.getByRole('radio', { name: /^2 .*anna by python3.*4\.0 KiB.*raw.*calibrated/ });
  fireEvent.click(radio);
  expect(choose).toHaveBeenCalledWith('2');
  expect(screen.getByRole<HTMLInputElement>('radio', { name: /^Live/ }).checked).toBe(true);
});

test('a zoom leaves out what is outside, and All brings it back', () => {
  const versions = Array.from({ length: 50 }, (_, i) => version(50 - i));
  render(<Timeline versions={versions} chosen="1" isLive={false} onChoose={() => undefined} />);
  expect(screen.getAllByRole('radio')).toHaveLength(51);
  for (let i = 0; i < 4; i += 1) fireEvent.click(screen.getByRole('button', { name: 'Zoom in' }));
  const left = screen.getAllByRole('radio').length - 1;
  expect(left).toBeLessThan(9);
  expect(screen.getByText(new RegExp(`: ${left} of 50 versions`))).toBeTruthy();
  fireEvent.click(screen.getByRole('button', { name: 'All' }));
  expect(screen.getAllByRole('radio')).toHaveLength(51);
});
