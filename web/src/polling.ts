import { useEffect, useState } from 'react';

export interface Polled<T> {
  value: T | undefined;
  failure: string; // of the last try; the value is that of the last one that went well
  now: number; // when the value came
}

// Asks again every `everyMs` after an answer, while the page can be seen.
export function usePolled<T>(ask: (signal: AbortSignal) => Promise<T>, everyMs: number): Polled<T> {
  const [polled, setPolled] = useState<Polled<T>>({ value: undefined, failure: '', now: Date.now() });
  useEffect(() => {
    const ended = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    async function turn() {
      if (!document.hidden) {
        try {
          const value = await ask(ended.signal);
          if (!ended.signal.aborted) setPolled({ value, failure: '', now: Date.now() });
        } catch (error) {
          const failure = error instanceof Error ? error.message : String(error);
          if (!ended.signal.aborted) setPolled((old) => ({ ...old, failure }));
        }
      }
      if (!ended.signal.aborted) timer = setTimeout(() => void turn(), everyMs);
    }
    void turn();
    return () => {
      ended.abort();
      clearTimeout(timer);
    };
  }, [ask, everyMs]);
  return polled;
}
