/** Which runs are shown: the address says it, the API takes it. */

import type { RunState, Schema } from '../../api/client';

export const STATES: RunState[] = [
  'pending', 'running', 'waiting_approval', 'waiting_signal', 'paused', 'rolling_back', 'succeeded', 'failed', 'canceled',
];

export const SINCE: [string, string, number][] = [
  ['1h', 'Last hour', 3_600_000],
  ['24h', 'Last 24 hours', 86_400_000],
  ['7d', 'Last 7 days', 7 * 86_400_000],
];

export interface RunFilter {
  state?: RunState;
  workflow?: string;
  subject?: string;
  /** Occurs in the id, the subject, a label or a searchable input. */
  text?: string;
  trigger?: string;
  workspace?: string;
  label: string[];
  input: string[];
  created_from?: number;
}

/** From the address. The beginning of a span is rounded to the minute, so that the question stays the same meanwhile. */
export function filterOf(query: URLSearchParams, now: number): RunFilter {
  const word = (name: string) => query.get(name) ?? undefined;
  const state = STATES.find((state) => state === query.get('state'));
  const since = SINCE.find(([name]) => name === query.get('since'));
  return {
    state,
    workflow: word('workflow'),
    subject: word('subject'),
    text: word('text'),
    trigger: word('trigger'),
    workspace: word('workspace'),
    label: query.getAll('label').slice(0, 3),
    input: query.getAll('input').slice(0, 3),
    created_from: since === undefined ? undefined : Math.floor((now - since[2]) / 60_000) * 60_000,
  };
}

export function isEmpty(filter: RunFilter): boolean {
  return Object.values(filter).every((value) => value === undefined || (Array.isArray(value) && value.length === 0));
}

/** Why a bulk job cannot be asked with this filter, if so. */
export function notForBulk(filter: RunFilter): string | undefined {
  if (isEmpty(filter)) return 'Filter first: a bulk action never means everything';
  // The jobs' filter has no such field; leaving it out would mean more runs than are shown.
  if (filter.text !== undefined) return 'A bulk action takes no part of a text: filter by subject:…, label:value or input.name:value';
  return undefined;
}

const pairs = (list: string[]) => Object.fromEntries(list.map((pair) => pair.split(/:(.*)/s) as [string, string]));

/** The same for a bulk job. */
export function bulkFilter({ label, input, ...rest }: RunFilter): Schema['RunQuery'] {
  return {
    ...rest,
    ...(label.length > 0 && { labels: pairs(label) }),
    ...(input.length > 0 && { inputs: pairs(input) }),
  };
}

/** The text of the search field, as a filter: an id, `subject:…`, `label:value`, `input.name:value`, or a part of these. */
export function searched(typed: string): { run: string } | { name: 'label' | 'input' | 'subject' | 'text'; value: string } | undefined {
  const text = typed.trim();
  if (text === '') return undefined;
  if (/^run_[0-9a-f-]{32,36}$/.test(text)) return { run: text };
  const [, name, value] = /^([\w.-]+):(.+)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) return { name: 'text', value: text };
  if (name === 'subject') return { name, value };
  return name.startsWith('input.')
    ? { name: 'input', value: `${name.slice('input.'.length)}:${value}` }
    : { name: 'label', value: `${name}:${value}` };
}

/** The filter as a sentence, for confirmations. */
export function inWords(filter: RunFilter): string {
  const said = [
    filter.state !== undefined && `state ${filter.state}`,
    filter.workflow !== undefined && `workflow ${filter.workflow}`,
    filter.subject !== undefined && `subject ${filter.subject}`,
    filter.text !== undefined && `with “${filter.text}”`,
    filter.trigger !== undefined && `started by ${filter.trigger}`,
    filter.workspace !== undefined && `workspace ${filter.workspace}`,
    ...filter.label.map((pair) => `label ${pair}`),
    ...filter.input.map((pair) => `input ${pair}`),
    filter.created_from !== undefined && `started after ${new Date(filter.created_from).toLocaleString()}`,
  ];
  return said.filter(Boolean).join(', ');
}
