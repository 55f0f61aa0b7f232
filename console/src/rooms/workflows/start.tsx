/** Starting a run: a form made from the workflow's inputs, and a look at what would happen before it does. */

import { useRef, useState } from 'react';
import { useMutation } from '@tanstack/react-query';
import { api, intention, must, type Schema } from '../../api/client';
import { Button } from '../../parts/button';
import { Area, Check, FormDialog, Input, Select, text } from '../../parts/form';
import { ProblemNote } from '../../parts/notes';
import { at, go } from '../../route/router';
import { WalkedStep } from '../approvals/card';
import type { Definition } from '../run/query';
import { limitsOf, schemaOf, typedAs, valueOf, type InputSchema } from './inputs';
import { optionsOf, StartOptions } from './start-options';

interface Props {
  name: string;
  definition: Definition;
  /** What stands in the fields at first, of a run that was started before. */
  inputs?: Record<string, unknown>;
  close: () => void;
}

export function StartDialog({ name, definition, inputs = {}, close }: Props) {
  const declared = Object.entries(definition.inputs ?? {}).map(([input, as]) => ({ input, schema: schemaOf(as) }));
  // What has to be filled in comes first.
  const fields = declared.toSorted((a, b) => Number(b.schema.required === true) - Number(a.schema.required === true));
  const [key] = useState(intention);
  const inside = useRef<HTMLDivElement>(null);
  const typed = (form: FormData): Schema['Json'] => {
    const inputs = fields.map(({ input, schema }) => [input, valueOf(input, schema, text(form, `input.${input}`))]);
    return Object.fromEntries(inputs.filter(([, value]) => value !== undefined)) as Schema['Json'];
  };
  const plan = useMutation({
    mutationFn: () => {
      const form = inside.current!.closest('form')!;
      return must(api.POST('/api/v1/workflows/plan', { body: { workflow: name, inputs: typed(new FormData(form)) } }));
    },
  });
  async function start(form: FormData) {
    const body = { workflow: name, inputs: typed(form), ...optionsOf(form) } as Schema['StartRun'];
    const started = await must(api.POST('/api/v1/runs', { headers: key, body }));
    go(at('runs', started.run_id));
    return started.admission === 'queued' ? 'The run is queued behind another one for the same subject.' : 'The run has started.';
  }
  return (
    <FormDialog title={`Start ${name}`} verb="Start the run" wide close={close} act={start}>
      <div ref={inside}>
        {fields.length === 0 && <p className="quiet">This workflow takes no inputs.</p>}
        {fields.map(({ input, schema }) => (
          <InputField key={input} name={input} schema={input in inputs ? { ...schema, default: inputs[input] } : schema} />
        ))}
      </div>
      <StartOptions />
      <div className="plan">
        <Button onClick={() => plan.mutate()} busy={plan.isPending}>
          What would happen?
        </Button>
        {plan.error !== null && <ProblemNote error={plan.error} />}
        {plan.data !== undefined && (
          <>
            <p>
              {plan.data.steps.length} steps, blast radius {plan.data.blast_radius}
              {plan.data.subject != null && `, for ${plan.data.subject}`}. Nothing has started yet.
            </p>
            <ol className="walk">
              {plan.data.steps.map((step) => (
                <WalkedStep key={step.step} step={step} />
              ))}
            </ol>
          </>
        )}
      </div>
    </FormDialog>
  );
}

function InputField({ name, schema }: { name: string; schema: InputSchema }) {
  const field = `input.${name}`;
  const required = schema.required === true;
  const label = required ? name : `${name} (optional)`;
  const fallback = typedAs(schema);
  const hint = [schema.description, limitsOf(schema)].filter(Boolean).join(' ') || undefined;
  if (schema.enum !== undefined) {
    return (
      <Select name={field} label={label} hint={schema.description} required={required} defaultValue={fallback}>
        {!required && <option value="" />}
        {schema.enum.map((value) => (
          <option key={String(value)}>{String(value)}</option>
        ))}
      </Select>
    );
  }
  if (schema.type === 'boolean') {
    return <Check name={field} value="true" defaultChecked={schema.default === true} label={<>{name} {schema.description !== undefined && <span className="quiet">{schema.description}</span>}</>} />;
  }
  if (schema.secret === true) return <Input name={field} label={label} required={required} hint={`${schema.description ?? ''} The secret’s name, not its value.`} />;
  if (schema.type === 'object' || schema.type === 'array' || schema.type === undefined) {
    return <Area name={field} label={label} required={required} defaultValue={fallback} rows={3} code hint={`${schema.description ?? ''} Written as JSON.`} />;
  }
  const number = schema.type === 'integer' || schema.type === 'number';
  return (
    <Input
      name={field}
      label={label}
      hint={hint}
      required={required}
      defaultValue={fallback}
      inputMode={number ? 'decimal' : 'text'}
      maxLength={schema.max_length}
    />
  );
}
