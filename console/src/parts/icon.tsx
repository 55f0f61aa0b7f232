/** The few drawings that the console needs, in one stroke each. */

const PATHS = {
  runs: 'M3 5h7M3 10h11M3 15h9',
  approvals: 'M4 10.5l4 4 8-9',
  workflows: 'M4 4h4v4H4zM12 12h4v4h-4zM8 6h3a3 3 0 0 1 3 3v3',
  schedules: 'M10 5v5l3 2M17 10a7 7 0 1 1-14 0 7 7 0 0 1 14 0',
  workers: 'M4 4h12v4H4zM4 12h12v4H4zM7 6h.1M7 14h.1',
  policy: 'M10 3l6 2.5V10c0 3.5-2.5 6-6 7-3.5-1-6-3.5-6-7V5.5z',
  audit: 'M6 3h8v14H6zM8.5 7h3M8.5 10h3M8.5 13h2',
  webhooks: 'M4 7h9l-3-3M16 13H7l3 3',
  settings: 'M4 6h5M13 6h3M4 14h3M11 14h5M11 4v4M9 12v4',
  keyboard: 'M3 6h14v8H3zM6 9h.1M9 9h.1M12 9h.1M14.5 9h.1M7 11.5h6',
  more: 'M5 10h.1M10 10h.1M15 10h.1',
  search: 'M9 15a6 6 0 1 0 0-12 6 6 0 0 0 0 12M13.5 13.5L17 17',
  switch: 'M7 8l3-3 3 3M7 12l3 3 3-3',
  play: 'M6 4l9 6-9 6z',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 20 20" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
