// The page's own addresses: / and /files/NAME?version=12&path=/entry.

import { useSyncExternalStore } from 'react';

export type Route =
  | { page: 'files' }
  | { page: 'file'; name: string; version: string; path: string }; // version '': live

export function parse(pathname: string, search: string): Route {
  const prefix = '/files/';
  if (!pathname.startsWith(prefix) || pathname.length === prefix.length) return { page: 'files' };
  const query = new URLSearchParams(search);
  const version = query.get('version') ?? '';
  return {
    page: 'file',
    name: decoded(pathname.slice(prefix.length)),
    version: /^[0-9]{1,18}$/.test(version) ? version : '',
    path: query.get('path') ?? '/',
  };
}

export function pathOf(route: Route): string {
  if (route.page === 'files') return '/';
  const name = route.name.split('/').map(encodeURIComponent).join('/');
  const query = new URLSearchParams();
  if (route.version !== '') query.set('version', route.version);
  if (route.path !== '/') query.set('path', route.path);
  const text = query.toString();
  return `/files/${name}${text === '' ? '' : `?${text}`}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // A '%' that begins no byte stands for itself.
  }
}

export const LOGIN = '/login'; // Where the issuer sends the browser back to.

// Takes an address of this page, as a login has kept it, in place of the present one.
export function replaceAddress(address: string): void {
  history.replaceState(null, '', address);
  window.dispatchEvent(new Event(CHANGED));
}

const CHANGED = 'h5mirror:route';

export function go(route: Route, how: 'push' | 'replace' = 'push'): void {
  if (how === 'push') history.pushState(null, '', pathOf(route));
  else history.replaceState(null, '', pathOf(route));
  window.dispatchEvent(new Event(CHANGED));
}

function subscribe(then: () => void): () => void {
  window.addEventListener('popstate', then);
  window.addEventListener(CHANGED, then);
  return () => {
    window.removeEventListener('popstate', then);
    window.removeEventListener(CHANGED, then);
  };
}

export function useRoute(): Route {
  const href = useSyncExternalStore(subscribe, () => location.pathname + location.search);
  const [pathname = '/', search = ''] = href.split('?');
  return parse(pathname, search);
}
