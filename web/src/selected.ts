// Which object is selected in h5web. Its requests do not tell: it asks about children of a group ahead, and asks nothing about a
// dataset that it knows already. So the build lets it write the selection into its root element (mended.ts).

const ATTRIBUTE = 'data-selected-path';

// Tells the selection within `root` now, and each other one; '': h5web is not there, or shows that it has failed. Returns what
// ends that.
export function watchSelection(root: Element, tell: (path: string) => void): () => void {
  let last: string | undefined;
  const look = () => {
    const path = root.querySelector(`[${ATTRIBUTE}]`)?.getAttribute(ATTRIBUTE) ?? '';
    if (path === last) return;
    last = path;
    tell(path);
  };
  const observer = new MutationObserver(look);
  observer.observe(root, { attributeFilter: [ATTRIBUTE], childList: true, subtree: true });
  look();
  return () => observer.disconnect();
}
