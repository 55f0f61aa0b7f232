/** What a start may say beside its inputs. */

import type { Schema } from '../../api/client';
import { Area, Input, maybe, Select, text } from '../../parts/form';

export function StartOptions() {
  return (
    <details>
      <summary>Subject, labels, priority</summary>
      <Input name="subject" label="Subject (optional)" hint="What the run is about, instead of what the workflow says. One run at a time is active for a subject." />
      <Select name="on_conflict" label="While another run is active for the subject" defaultValue="">
        <option value="">refuse this one</option>
        <option value="queue">queue behind it</option>
        <option value="cancel_previous">cancel that one</option>
      </Select>
      <Area name="labels" label="Labels (optional)" rows={2} hint="One on a line: name:value." />
      <Input name="priority" label="Priority (optional)" type="number" hint="Higher ones go first; 0 where the workflow says nothing." />
    </details>
  );
}

/** `name:value`, one on a line. Throws what is wrong. */
export function labelsOf(typed: string): Record<string, string> {
  const lines = typed.split('\n').map((line) => line.trim()).filter(Boolean);
  return Object.fromEntries(
    lines.map((line) => {
      const [, name, value] = /^([^:\s]+):(.+)$/.exec(line) ?? [];
      if (name === undefined || value === undefined) throw new Error(`A label is written name:value, not “${line}”`);
      return [name, value.trim()];
    }),
  );
}

export function optionsOf(form: FormData): Pick<Schema['StartRun'], 'subject' | 'labels' | 'priority' | 'on_conflict'> {
  const priority = text(form, 'priority');
  const labels = labelsOf(text(form, 'labels'));
  return {
    subject: maybe(form, 'subject'),
    on_conflict: maybe(form, 'on_conflict') as Schema['OnConflict'] | undefined,
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(priority !== '' && { priority: Number(priority) }),
  };
}
