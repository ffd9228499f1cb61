import { useEffect, useState } from 'react';

export interface Polled<T> {
  value: T | undefined;
  failure: string; // of the last try; the value is that of the last one that went well
  now: number; // when the value came
}

// One try. `tell` takes a part of its answer, to be shown before the rest is there; `old` is the last value.
export type Ask<T> = (signal: AbortSignal, tell: (part: T) => void, old: T | undefined) => Promise<T>;

// Asks again every `everyMs` after an answer, while the page can be seen.
export function usePolled<T>(ask: Ask<T>, everyMs: number): Polled<T> {
  const [polled, setPolled] = useState<Polled<T>>({ value: undefined, failure: '', now: Date.now() });
  useEffect(() => {
    const ended = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let old: T | undefined;
    function tell(value: T) {
      if (ended.signal.aborted) return;
      old = value;
      setPolled({ value, failure: '', now: Date.now() });
    }
    async function turn() {
      if (!document.hidden) {
        try {
          tell(await ask(ended.signal, tell, old));
        } catch (error) {
          const failure = error instanceof Error ? error.message : String(error);
          if (!ended.signal.aborted) setPolled((was) => ({ ...was, failure }));
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
