// The server's events of one file, as they happen.

import { useEffect, useState } from 'react';

import { eventsUrl } from './api';
import type { FileStatus, Version } from './model';

export interface News {
  status: FileStatus | undefined; // undefined: nothing was told yet
  versions: Version[]; // since the page was opened, oldest first
  isLost: boolean; // the stream is broken; it is tried again
}

const AGAIN_MS = 5000;
const NOTHING: News = { status: undefined, versions: [], isLost: false };

// A browser connects again by itself after a broken stream, and not after an error: that is done here.
export function useNews(name: string): News {
  const [news, setNews] = useState<{ name: string; news: News }>({ name, news: NOTHING });
  useEffect(() => {
    let source: EventSource;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const change = (next: (news: News) => News) =>
      setNews((old) => ({ name, news: next(old.name === name ? old.news : NOTHING) }));
    const connect = () => {
      source = new EventSource(eventsUrl(name));
      source.addEventListener('open', () => change((old) => ({ ...old, isLost: false })));
      source.addEventListener('state', (event: MessageEvent<string>) => {
        const status = JSON.parse(event.data) as FileStatus;
        change((old) => ({ ...old, status, isLost: false }));
      });
      source.addEventListener('version', (event: MessageEvent<string>) => {
        const version = JSON.parse(event.data) as Version;
        change((old) => ({ ...old, versions: withVersion(old.versions, version) }));
      });
      source.addEventListener('error', () => {
        change((old) => ({ ...old, isLost: true }));
        if (source.readyState === EventSource.CLOSED) timer = setTimeout(connect, AGAIN_MS);
      });
    };
    connect();
    return () => {
      clearTimeout(timer);
      source.close();
    };
  }, [name]);
  return news.name === name ? news.news : NOTHING;
}

// A stream that begins again may tell a version twice.
function withVersion(versions: Version[], version: Version): Version[] {
  return versions.some((each) => each.version === version.version) ? versions : [...versions, version];
}
