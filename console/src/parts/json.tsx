/** A payload, readable: indented, coloured, and short until the viewer opens it. */

import { useMemo, useState } from 'react';
import { written } from '../text/exact';
import { Copy } from './copy';
import { Text } from './text';

const LINES_SHOWN = 24;
/** Past this the page would be slow; the whole of it can still be copied. */
const LINES_MAX = 2_000;

type TokenKind = 'name' | 'text' | 'number' | 'word' | 'mark';
interface Token {
  kind: TokenKind;
  text: string;
}

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d[\d.eE+-]*)|(true|false|null)|([[\]{},:\s]+)/g;

export function tokens(line: string): Token[] {
  const found: Token[] = [];
  for (const [whole, text, colon, number, word] of line.matchAll(TOKEN)) {
    if (text !== undefined && colon !== undefined) found.push({ kind: 'name', text }, { kind: 'mark', text: colon });
    else if (text !== undefined) found.push({ kind: 'text', text });
    else if (number !== undefined) found.push({ kind: 'number', text: number });
    else if (word !== undefined) found.push({ kind: 'word', text: word });
    else found.push({ kind: 'mark', text: whole });
  }
  return found;
}

interface Stored {
  sha256: string;
  bytes: number;
  url: string;
}

/** A payload that is too long for the answer comes as its place. */
function storedElsewhere(value: unknown): Stored | undefined {
  if (typeof value !== 'object' || value === null || Object.keys(value).length !== 1) return undefined;
  const place = (value as Record<string, unknown>)['$payload'] as Stored | undefined;
  return typeof place?.url === 'string' && place.url.startsWith('/api/') ? place : undefined;
}

export function JsonView({ value, what }: { value: unknown; what: string }) {
  const [all, setAll] = useState(false);
  const text = useMemo(() => written(value, 2), [value]);
  const stored = storedElsewhere(value);
  if (stored !== undefined) {
    return (
      <p className="quiet">
        {stored.bytes.toLocaleString()} bytes, kept apart. <a href={stored.url}>Open it</a>
      </p>
    );
  }
  const lines = text.split('\n');
  const shown = all ? lines.slice(0, LINES_MAX) : lines.slice(0, LINES_SHOWN);
  return (
    <div className="json">
      <pre tabIndex={0} aria-label={what}>
        {shown.map((line, index) => (
          <div key={index}>
            {tokens(line).map((token, place) => (
              <span key={place} className={`j-${token.kind}`}>
                <Text of={token.text} />
              </span>
            ))}
          </div>
        ))}
      </pre>
      <Copy text={text} what={what} />
      {lines.length > shown.length && (
        <button type="button" className="more" onClick={() => setAll(true)}>
          {all ? `${lines.length - shown.length} more lines: copy it to see them` : `Show all ${lines.length} lines`}
        </button>
      )}
    </div>
  );
}
