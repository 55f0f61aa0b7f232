import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import react from '@vitejs/plugin-react';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

/** `npm run dev` sends what is not the console's to a server that runs beside it. */
const SERVER = process.env.INTERLOCK_SERVER ?? 'http://127.0.0.1:8420';
const PAGES = ['/login', '/logout', '/setup', '/account', '/auth', '/docs', '/sign-in.css', '/openapi.json', '/schema'];

/** What a first visit downloads, compressed. */
const BUNDLE_BYTES_MAX = 400_000;

/** Refuses a console that has grown too large to be fetched at once. The build of the server compresses the files. */
function limited(): Plugin {
  return {
    name: 'limited',
    apply: 'build',
    closeBundle() {
      let bytes = 0;
      for (const entry of readdirSync('dist', { recursive: true, withFileTypes: true })) {
        const path = join(entry.parentPath, entry.name);
        if (entry.isFile() && /\.(html|js|css|svg)$/.test(entry.name)) {
          bytes += gzipSync(readFileSync(path), { level: 9 }).length;
        }
      }
      if (bytes > BUNDLE_BYTES_MAX) throw new Error(`the console has ${bytes} bytes compressed; ${BUNDLE_BYTES_MAX} is the most`);
    },
  };
}

export default defineConfig({
  plugins: [react(), limited()],
  build: {
    // Nothing inline: the page's policy allows only files of this server.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The limit that counts is that of the compressed files, above.
    chunkSizeWarningLimit: 1_000,
  },
  server: {
    proxy: {
      '/api': { target: SERVER },
      '/ws': { target: SERVER, ws: true },
      ...Object.fromEntries(PAGES.map((page) => [page, { target: SERVER }])),
    },
  },
  // None of them waits for anything; a busy machine may take longer than the default of five seconds.
  test: { pool: 'threads', isolate: false, testTimeout: 60_000, hookTimeout: 60_000, include: ['src/**/*.test.{ts,tsx}'] },
});
