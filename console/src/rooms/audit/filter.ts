/** Which entries are shown: the address says it, the API takes it. */

export interface AuditFilter {
  run?: string;
  type?: string;
  actor?: string;
  since?: number;
  until?: number;
}

/** First words of the events that entries are about. */
export const KINDS: [string, string][] = [
  ['session', 'Runs'],
  ['execution', 'Steps'],
  ['approval', 'Approvals'],
  ['policy', 'Policy'],
  ['receipt', 'Effects'],
  ['login', 'Sign-ins'],
  ['user', 'People'],
  ['key', 'Keys'],
  ['delegation', 'Delegations'],
  ['workflow', 'Workflows'],
  ['schedule', 'Schedules'],
  ['webhook', 'Webhooks that come in'],
  ['webhook_endpoint', 'Webhooks that go out'],
  ['bulk', 'Actions on many runs'],
  ['tenant', 'Limits and settings'],
  ['audit', 'The log itself'],
];

/** The beginning of a day in the viewer's zone, `2026-01-31`, moved by some days. */
export function dayStart(day: string | null, days = 0): number | undefined {
  const [, year, month, date] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(day ?? '') ?? [];
  if (year === undefined) return undefined;
  return new Date(Number(year), Number(month) - 1, Number(date) + days).getTime();
}

/** From the address. `to` names the last day that is shown. */
export function auditFilterOf(query: URLSearchParams): AuditFilter {
  const word = (name: string) => query.get(name)?.trim() || undefined;
  const run = word('run');
  return {
    // The server refuses a text that is no id.
    run: run !== undefined && /^run_[0-9a-f]{32}$/i.test(run) ? run : undefined,
    type: word('type'),
    actor: word('actor'),
    since: dayStart(query.get('from')),
    until: dayStart(query.get('to'), 1),
  };
}

export function isFiltered(filter: AuditFilter): boolean {
  return Object.values(filter).some((value) => value !== undefined);
}
