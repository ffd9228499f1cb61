// The versions of a file: a page of them at a time from the newest on, and those that come meanwhile.

import { useCallback, useEffect, useMemo, useState } from 'react';

import { versions as ask } from './api';
import type { Version } from './model';

interface History {
  versions: Version[]; // newest first
  failure: string;
  more: (() => void) | undefined; // asks for older ones; undefined: there are none
  reload: () => void; // the newest ones, as of tags
}

export function merged(known: readonly Version[], news: readonly Version[]): Version[] {
  const all = new Map(known.map((each) => [each.version, each]));
  for (const each of news) all.set(each.version, each);
  return [...all.values()].sort((a, b) => Number(b.version) - Number(a.version));
}

export function useVersions(name: string, news: readonly Version[]): History {
  const [known, setKnown] = useState<Version[]>([]);
  const [next, setNext] = useState('');
  const [failure, setFailure] = useState('');

  const load = useCallback(
    (token: string, signal: AbortSignal) => {
      ask(name, token, signal).then(
        (page) => {
          if (signal.aborted) return;
          setKnown((old) => merged(old, page.versions));
          setNext(page.next);
          setFailure('');
        },
        (error: unknown) => {
          if (!signal.aborted) setFailure(error instanceof Error ? error.message : String(error));
        },
      );
    },
    [name],
  );

  useEffect(() => {
    const ended = new AbortController();
    load('', ended.signal);
    return () => ended.abort();
  }, [load]);

  // Of a version that was told and then asked for, the answer counts: it may have other tags.
  const all = useMemo(() => merged(news, known), [known, news]);
  const more = next === '' ? undefined : () => load(next, new AbortController().signal);
  const reload = useCallback(() => load('', new AbortController().signal), [load]);
  return { versions: all, failure, more, reload };
}
