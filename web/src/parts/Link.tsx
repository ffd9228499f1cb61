import type { MouseEvent, ReactNode } from 'react';

import { go, pathOf, type Route } from '../route';

interface Props {
  to: Route;
  className?: string;
  children: ReactNode;
}

// A link within the page; with a modifier key it is the browser's.
export function Link({ to, className, children }: Props) {
  function follow(event: MouseEvent) {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to);
    document.getElementById('main')?.focus(); // Where a loaded page would begin.
  }
  return (
    <a href={pathOf(to)} className={className} onClick={follow}>
      {children}
    </a>
  );
}
