/** The start form: one field per input of the workflow, and what was typed as the JSON that the API takes. */

import { isMarked, parseExact, written } from '../../text/exact';
export interface InputSchema {
  type?: 'string' | 'integer' | 'number' | 'boolean' | 'object' | 'array';
  description?: string;
  required?: boolean;
  default?: unknown;
  enum?: unknown[];
  min?: number;
  max?: number;
  min_length?: number;
  max_length?: number;
  pattern?: string;
  secret?: boolean;
}

/** An input is declared by its type alone, or by a whole schema. */
export function schemaOf(declared: unknown): InputSchema {
  if (typeof declared === 'string') return { type: declared as InputSchema['type'] };
  return typeof declared === 'object' && declared !== null ? (declared as InputSchema) : {};
}

/** What was typed, as a value of the input's type; undefined where nothing was. Throws what to do instead. */
export function valueOf(name: string, schema: InputSchema, typed: string): unknown {
  if (schema.type === 'boolean') return typed === 'true';
  if (typed === '') return undefined;
  if (schema.enum !== undefined) return schema.enum.find((value) => String(value) === typed);
  if (schema.secret === true) return { $secret: typed };
  switch (schema.type) {
    case 'string':
      return typed;
    case 'integer':
    case 'number': {
      const number = Number(typed);
      if (!Number.isFinite(number) || (schema.type === 'integer' && !Number.isSafeInteger(number))) {
        throw new Error(`“${name}” takes ${schema.type === 'integer' ? 'a whole number' : 'a number'}, not “${typed}”`);
      }
      return number;
    }
    default:
      try {
        return parseExact(typed);
      } catch {
        throw new Error(`“${name}” takes ${schema.type === undefined ? 'a value' : `an ${schema.type}`} written as JSON`);
      }
  }
}

/** A value as a person would type it into its field. */
export function typedAs({ default: value, secret }: InputSchema): string {
  if (value === undefined || value === null) return '';
  if (secret === true) return typeof value === 'object' ? String((value as { $secret?: unknown }).$secret ?? '') : '';
  return typeof value === 'string' && !isMarked(value) ? value : written(value);
}

/** What the value has to keep to, in words. */
export function limitsOf({ type, min, max, min_length, max_length, pattern }: InputSchema): string {
  const between = (low: number | undefined, high: number | undefined, what: string) => {
    if (low !== undefined && high !== undefined) return `${low} to ${high}${what}.`;
    if (low !== undefined) return `At least ${low}${what}.`;
    return high !== undefined ? `At most ${high}${what}.` : '';
  };
  const said = [
    type === 'integer' && 'A whole number.',
    type === 'number' && 'A number.',
    between(min, max, ''),
    between(min_length, max_length, ' characters'),
    pattern !== undefined && `Like ${pattern}`,
  ];
  return said.filter(Boolean).join(' ');
}
