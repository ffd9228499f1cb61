import type { Plugin } from 'vite';

// Defects of h5web 17 that axe, a phone or a keyboard show, and events that it lacks, each with the
// text that replaces h5web's. A build fails where h5web has changed.
const MENDS: readonly { file: string; old: string; mended: string }[] = [
  {
    // A tab is selected; only a radio button is checked.
    file: '/@h5web/lib/dist/index.js',
    old: '"aria-checked": n === c,',
    mended: '[s === "tablist" ? "aria-selected" : "aria-checked"]: n === c,',
  },
  {
    // Tabs are in a list of tabs.
    file: '/@h5web/app/dist/index.js',
    old: 'className: pc.tabBar,',
    mended: 'className: pc.tabBar, role: "tablist", "aria-label": "Sidebar",',
  },
  {
    // Beside 500 pixels a phone has no place for the tree.
    file: '/@h5web/app/dist/index.js',
    old: 'minSize: 500,',
    mended: 'minSize: 150,',
  },
  {
    // Which object is selected, for selected.ts: h5web tells it to nobody.
    file: '/@h5web/app/dist/index.js',
    old: '"data-fullscreen-root": !0,',
    mended: '"data-fullscreen-root": !0, "data-selected-path": o,',
  },
  // The tree takes the focus when it comes. It must not take the focus from a visitor who chooses a
  // version meanwhile.
  focusedWithin('o && a.current?.focus();', 'a'),
  focusedWithin('o && s.current?.focus();', 's'),
];

function focusedWithin(old: string, element: string) {
  const isWithin = `${element}.current?.closest("[data-fullscreen-root]")?.contains(document.activeElement)`;
  return { file: '/@h5web/app/dist/index.js', old, mended: `${isWithin} && ${old}` };
}

export function mended(): Plugin {
  return {
    name: 'mended',
    transform(code, id) {
      const mends = MENDS.filter(({ file }) => id.split('?')[0]?.endsWith(file));
      if (mends.length === 0) return null;
      let text = code;
      for (const { old, mended: better } of mends) {
        if (text.split(old).length !== 2) throw new Error(`mended.ts: h5web has no longer once: ${old}`);
        text = text.replace(old, better);
      }
      return { code: text, map: null };
    },
  };
}
