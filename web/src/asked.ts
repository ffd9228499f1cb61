import { useEffect, useState } from 'react';

export interface Asked<T> {
  value: T | undefined; // undefined: nothing was asked, or there is no answer yet
  failure: string;
  isAsking: boolean;
}

const NOTHING = { value: undefined, failure: '', isAsking: false };

// Asks once for each `ask`, which a caller keeps as long as it means the same; undefined: nothing.
export function useAsked<T>(ask: ((signal: AbortSignal) => Promise<T>) | undefined): Asked<T> {
  const [asked, setAsked] = useState<{ ask: typeof ask; answer: Asked<T> }>({ ask: undefined, answer: NOTHING });
  useEffect(() => {
    if (ask === undefined) return undefined;
    const ended = new AbortController();
    const tell = (answer: Asked<T>) => {
      if (!ended.signal.aborted) setAsked({ ask, answer });
    };
    ask(ended.signal).then(
      (value) => tell({ value, failure: '', isAsking: false }),
      (error: unknown) => tell({ ...NOTHING, failure: failureOf(error) }),
    );
    return () => ended.abort();
  }, [ask]);
  if (ask === undefined) return NOTHING;
  return asked.ask === ask ? asked.answer : { ...NOTHING, isAsking: true };
}

export function failureOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
