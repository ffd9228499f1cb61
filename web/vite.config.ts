import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

// The build goes into the Python package, from where `h5mirror web` serves it.
export default defineConfig({
  plugins: [react()],
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
