import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

import { mended } from './mended.ts';

// The build goes into the Python package, from where `h5mirror web` serves it.
export default defineConfig({
  plugins: [react(), mended()],
  resolve: {
    // The page's CSP allows no code that is made of text.
    alias: [
      { find: /^ndarray$/, replacement: new URL('src/ndarray/ndarray.ts', import.meta.url).pathname },
      { find: /^ndarray-ops$/, replacement: new URL('src/ndarray/ops.ts', import.meta.url).pathname },
    ],
  },
  build: {
    outDir: '../client_vfd/python/h5mirror/web/static',
    emptyOutDir: true,
    assetsInlineLimit: 0, // All by its own address, as the page's CSP wants it.
    chunkSizeWarningLimit: 2500, // h5web brings three.js; it is loaded with the first file.
  },
  server: {
    // `npm run dev` beside `h5mirror web --port 8080`.
    proxy: { '/api': 'http://127.0.0.1:8080' },
  },
  test: {
    environment: 'jsdom',
    include: ['src/**/*.test.{ts,tsx}'],
    restoreMocks: true,
  },
});
