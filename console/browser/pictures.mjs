/**
 * `npm run pictures`: puts the guide's pictures together from those that the browser tests have kept in `screenshots`. Run it
 * after `npm run browser`, then look at them.
 */

import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const FROM = 'screenshots';
const TO = '../docs/guide/images';
/** Every room, in the order of the navigation, with the two that are opened from a run. */
const ROOMS = [
  'sign-in', 'runs', 'run-waiting', 'workspace', 'approvals', 'workflow', 'schedules', 'workers', 'policy', 'audit', 'webhooks', 'settings-tenant',
];
const COLUMNS = 3;
const TILE = 480;
const GAP = 8;
const SINGLE = {
  'console-run': 'run-waiting-light-1280',
  'console-runs': 'runs-light-1280',
  'console-approvals': 'approvals-light-1280',
  'console-workers': 'workers-places-light-1280',
  'console-workspace': 'workspace-light-1280',
  'console-policy': 'run-decided-light-1280',
  'console-audit': 'audit-verified',
  'console-phone': 'approval-phone',
};

function screenshot(name) {
  const path = join(FROM, `${name}.png`);
  if (!existsSync(path)) throw new Error(`${path} is missing: npm run browser makes it`);
  return path;
}

for (const [name, from] of Object.entries(SINGLE)) copyFileSync(screenshot(from), join(TO, `${name}.png`));

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell', args: ['--headless', '--no-sandbox', '--disable-gpu'] });
try {
  for (const scheme of ['light', 'dark']) {
    const page = await browser.newPage({ viewport: { width: COLUMNS * TILE + (COLUMNS + 1) * GAP, height: TILE } });
    const ground = scheme === 'light' ? '#d9d9d3' : '#34393f';
    const tile = (room) => `<img width="${TILE}" src="data:image/png;base64,${readFileSync(screenshot(`${room}-${scheme}-1280`)).toString('base64')}">`;
    const grid = `display: grid; grid-template-columns: repeat(${COLUMNS}, ${TILE}px); gap: ${GAP}px; padding: ${GAP}px; margin: 0; background: ${ground}`;
    await page.setContent(`<body style="${grid}">${ROOMS.map(tile).join('')}</body>`);
    await page.screenshot({ path: join(TO, `console-rooms-${scheme}.png`), fullPage: true });
    await page.close();
  }
} finally {
  await browser.close();
}
