// Calls of the web process (docs/design/045-web.md, "Routes").

import type { Allowed, Blamed, Comparison, Diff, Done, ObjectHistory, Preview, Wanted } from './findings';
import { type FileList, type FileStatus, type FileSummary, MIRROR_STATES, type Version } from './model';

export interface Session {
  signed_in: boolean;
  csrf: string;
  server: string;
  login: string; // the name of the issuer where visitors log in; '': there is none
}

export class ApiError extends Error {
  public constructor(
    public readonly status: number, // of HTTP; 0: the web process does not answer
    message: string,
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

const FILES_MAX = 10_000;
const SIGN_INS = ['/api/session', '/api/login', '/api/login/finish'];

let csrf = '';
let signedOut: (why: string) => void = () => undefined;

// `then` is called when an answer says that the session has ended, with its words.
export function onSignedOut(then: (why: string) => void): void {
  signedOut = then;
}

// A name in a path: its slashes too, as one that ends in /events would be taken for a call.
export function quoted(name: string): string {
  return encodeURIComponent(name);
}

export function eventsUrl(name: string): string {
  return `/api/files/${quoted(name)}/events`;
}

export function bytesUrl(name: string, version: string): string {
  return `/api/bytes/${quoted(name)}@${version}`;
}

// The message of an answer that is not a success. Never throws.
export async function messageOf(response: Response): Promise<string> {
  try {
    const body: unknown = await response.json();
    if (typeof body === 'object' && body !== null && 'message' in body && typeof body.message === 'string') {
      return body.message;
    }
  } catch {
    // It is no JSON, as of a proxy between.
  }
  return `The server answers ${response.status} ${response.statusText}`;
}

async function call(path: string, init: RequestInit = {}): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(path, { ...init, credentials: 'same-origin' });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError(0, '`h5mirror web` does not answer. Is it still running?');
  }
  if (!response.ok) {
    const message = await messageOf(response);
    if (response.status === 401 && !SIGN_INS.includes(path)) signedOut(message);
    throw new ApiError(response.status, message);
  }
  return response.json();
}

function asSession(answer: unknown): Session {
  const session = answer as Session;
  csrf = session.csrf;
  return session;
}

export async function session(): Promise<Session> {
  return asSession(await call('/api/session'));
}

export async function signIn(given: { key: string } | { token: string }): Promise<Session> {
  const headers = { 'Content-Type': 'application/json' };
  return asSession(await call('/api/session', { method: 'POST', headers, body: JSON.stringify(given) }));
}

// The issuer's URL. `to` is the page that the visitor comes back to.
export async function beginLogin(to: string): Promise<string> {
  return ((await post('/api/login', { to })) as { url: string }).url;
}

// `answer` is the query that the issuer sent the browser back with.
export async function finishLogin(answer: URLSearchParams): Promise<Session & { to: string }> {
  const done = (await post('/api/login/finish', Object.fromEntries(answer))) as Session & { to: string };
  asSession(done);
  return done;
}

// `url`: where the browser then ends its login at the issuer; '': nowhere.
export async function signOut(): Promise<Session & { url: string }> {
  const done = (await post('/api/logout', {})) as Session & { url: string };
  asSession(done);
  return done;
}

export interface FilesShown {
  files: FileSummary[];
  isWhole: boolean;
  lacksDetails?: boolean; // the server is of a release that knows no `details`
}

// `tell` takes what has come up to a page that is not the last.
async function pages(query: string, signal: AbortSignal, tell?: (some: FileSummary[]) => void): Promise<FilesShown> {
  const files: FileSummary[] = [];
  let token = '';
  do {
    const more = token === '' ? '' : `page_token=${encodeURIComponent(token)}`;
    const asked = [query, more].filter(Boolean).join('&');
    const list = (await call(`/api/files${asked === '' ? '' : `?${asked}`}`, { signal })) as FileList;
    files.push(...list.files);
    token = list.next_page_token;
    if (token !== '') tell?.(files);
  } while (token !== '' && files.length < FILES_MAX);
  return { files, isWhole: token === '' };
}

function withKnown(names: FilesShown, some: readonly FileSummary[]): FilesShown {
  const known = new Map(some.map((file) => [file.name, file]));
  return { files: names.files.map((file) => known.get(file.name) ?? file), isWhole: names.isWhole };
}

// The list of an older server: the names of all files, and the states of those that a program has
// mirrored.
async function plainFiles(signal: AbortSignal, names: Promise<FilesShown>): Promise<FilesShown> {
  const states = MIRROR_STATES.map((state) => `state=${state}`).join('&');
  const [all, mirrored] = await Promise.all([names, pages(states, signal)]);
  return { ...withKnown(all, mirrored.files), lacksDetails: true };
}

// All files with their states, writers and histories, as far as the page takes them. The first time a server may look long
// for these, so the names come before. `old` says whether the server knows `details`; a page that is opened anew asks again.
export async function files(
  signal: AbortSignal,
  tell: (part: FilesShown) => void,
  old: FilesShown | undefined,
): Promise<FilesShown> {
  if (old?.lacksDetails === true) return plainFiles(signal, pages('', signal));
  let names: FilesShown | undefined;
  if (old === undefined) {
    names = await pages('', signal);
    tell(names);
  }
  try {
    return await pages('details=true', signal, names && ((some) => tell(withKnown(names, some))));
  } catch (error) {
    // A server answers so to a query that it does not know.
    if (!(error instanceof ApiError) || error.status !== 400) throw error;
    return plainFiles(signal, names === undefined ? pages('', signal) : Promise.resolve(names));
  }
}

export async function file(name: string, signal: AbortSignal): Promise<FileStatus> {
  return (await call(`/api/files/${quoted(name)}`, { signal })) as FileStatus;
}

// Newest first; `next` is '' after the oldest.
export async function versions(
  name: string,
  pageToken: string,
  signal: AbortSignal,
): Promise<{ versions: Version[]; next: string }> {
  const more = pageToken === '' ? '' : `?page_token=${encodeURIComponent(pageToken)}`;
  const answer = (await call(`/api/files/${quoted(name)}/versions${more}`, { signal })) as {
    versions: Version[];
    next_page_token: string;
  };
  return { versions: answer.versions, next: answer.next_page_token };
}

function find(what: string, query: Record<string, string>, signal: AbortSignal): Promise<unknown> {
  return call(`/api/${what}?${new URLSearchParams(query).toString()}`, { signal });
}

export async function diff(file: string, old: string, now: string, signal: AbortSignal): Promise<Diff> {
  return (await find('diff', { file, old, new: now }, signal)) as Diff;
}

export async function history(file: string, path: string, signal: AbortSignal): Promise<ObjectHistory> {
  return (await find('history', { file, path }, signal)) as ObjectHistory;
}

export async function blame(file: string, path: string, signal: AbortSignal): Promise<Blamed[]> {
  return ((await find('blame', { file, path }, signal)) as { attributes: Blamed[] }).attributes;
}

export async function allowed(file: string, signal: AbortSignal): Promise<Allowed> {
  return (await find('rights', { file }, signal)) as Allowed;
}

// Of a dataset, or of a block of it.
export async function compare(
  file: string,
  path: string,
  { old, now }: { old: string; now: string },
  block: Record<string, string>,
  signal: AbortSignal,
): Promise<Comparison> {
  return (await find('h5/compare', { file, path, version: now, other: old, ...block }, signal)) as Comparison;
}

function post(path: string, body: unknown): Promise<unknown> {
  const headers = { 'Content-Type': 'application/json', 'X-H5mirror-CSRF': csrf };
  return call(path, { method: 'POST', headers, body: JSON.stringify(body) });
}

// Changes nothing.
export async function preview(wanted: Wanted): Promise<Preview> {
  return (await post('/api/changes', { ...wanted, preview: true })) as Preview;
}

// What the preview has shown.
export async function change(wanted: Wanted, expected: string): Promise<Done> {
  return (await post('/api/changes', { ...wanted, preview: false, expected })) as Done;
}
