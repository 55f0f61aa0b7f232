/** Forms, most of them in a dialog: what is asked, what the server said to it, and one clear button. */

import { useId, type ComponentProps, type FormEvent, type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes } from 'react';
import { useMutation } from '@tanstack/react-query';
import { parseExact } from '../text/exact';
import { Button } from './button';
import { Dialog } from './dialog';
import { ProblemNote } from './notes';
import { useSay } from './toast';

interface Props {
  title: string;
  /** The button's word: the verb itself, never `OK`. */
  verb: string;
  danger?: boolean;
  wide?: boolean;
  /** There is nothing to do: the button says so. */
  disabled?: boolean;
  children?: ReactNode;
  /** Does it, and answers what to say about it, or false where the dialog goes on. Throws what went wrong. */
  act: (form: FormData) => Promise<string | void | false>;
  close: () => void;
}

export function FormDialog({ title, verb, danger = false, wide = false, disabled = false, children, act, close }: Props) {
  const say = useSay();
  const work = useMutation({
    mutationFn: act,
    onSuccess: (said) => {
      if (typeof said === 'string') say(said);
      if (said !== false) close();
    },
  });
  return (
    <Dialog title={title} close={close} wide={wide}>
      <FormBox act={(form) => !work.isPending && !disabled && work.mutate(form)}>
        {children}
        {work.error !== null && <ProblemNote error={work.error} />}
        <footer>
          <Button onClick={close}>Not now</Button>
          <Button type="submit" look={danger ? 'danger' : 'primary'} busy={work.isPending} disabled={disabled}>
            {verb}
          </Button>
        </footer>
      </FormBox>
    </Dialog>
  );
}

/** A form that the page itself takes, by its button or by Ctrl+Enter. */
export function FormBox({ act, children }: { act: (form: FormData) => void; children: ReactNode }) {
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    act(new FormData(event.currentTarget));
  }
  return (
    <form
      onSubmit={submit}
      onKeyDown={(event) => {
        // In a text of several lines Enter is a line.
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
      }}
    >
      {children}
    </form>
  );
}

/** A field of a form, as text without the spaces around it. */
export function text(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === 'string' ? value.trim() : '';
}

/** The same, absent where nothing was typed. */
export function maybe(form: FormData, name: string): string | undefined {
  return text(form, name) || undefined;
}

/** Words between commas or spaces. */
export function list(form: FormData, name: string): string[] {
  return text(form, name).split(/[\s,]+/).filter(Boolean);
}

/** A field of a form, as JSON. */
export function json(form: FormData, name: string): unknown {
  const typed = text(form, name);
  if (typed === '') return undefined;
  try {
    return parseExact(typed);
  } catch (error) {
    throw new Error(`“${name}” is not JSON: ${(error as Error).message}`);
  }
}

interface FieldProps {
  label: string;
  hint?: ReactNode;
  children: (id: string, hintId: string | undefined) => ReactNode;
}

export function Field({ label, hint, children }: FieldProps) {
  const id = useId();
  const hintId = hint === undefined ? undefined : `${id}h`;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(id, hintId)}
      {hint !== undefined && (
        <span className="hint" id={hintId}>
          {hint}
        </span>
      )}
    </div>
  );
}

type Labelled = { label: string; hint?: ReactNode };

export function Input({ label, hint, ...rest }: Labelled & ComponentProps<'input'>) {
  return (
    <Field label={label} hint={hint}>
      {(id, hintId) => <input id={id} aria-describedby={hintId} autoComplete="off" {...rest} />}
    </Field>
  );
}

interface AreaProps extends Labelled {
  name: string;
  rows?: number;
  required?: boolean;
  defaultValue?: string;
  code?: boolean;
}

export function Area({ label, hint, rows = 2, code = false, ...rest }: AreaProps) {
  return (
    <Field label={label} hint={hint}>
      {(id, hintId) => (
        <textarea id={id} aria-describedby={hintId} rows={rows} className={code ? 'code' : ''} spellCheck={!code} {...rest} />
      )}
    </Field>
  );
}

export function Select({ label, hint, children, ...rest }: Labelled & SelectHTMLAttributes<HTMLSelectElement>) {
  return (
    <Field label={label} hint={hint}>
      {(id, hintId) => (
        <select id={id} aria-describedby={hintId} {...rest}>
          {children}
        </select>
      )}
    </Field>
  );
}

export function Check({ label, ...rest }: { label: ReactNode } & InputHTMLAttributes<HTMLInputElement>) {
  return (
    <label className="check">
      <input type="checkbox" {...rest} />
      <span>{label}</span>
    </label>
  );
}

/** Why: it stands in the history, with the person's name. */
export function Reason({ required = true, label = 'Reason' }: { required?: boolean; label?: string }) {
  const words = required ? label : `${label} (optional)`;
  return <Area name="reason" label={words} required={required} hint="It stays in the history, with your name." />;
}
