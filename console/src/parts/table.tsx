/** A table of things of one kind. On a phone each row becomes a card. */

import type { Key, ReactNode, Ref } from 'react';

export interface Column<T> {
  title: string;
  /** Its title is for screen readers only: what stands in it explains itself. */
  bare?: boolean;
  number?: boolean;
  className?: string;
  cell: (row: T) => ReactNode;
}

interface Props<T> {
  /** What the table lists and in which order, for screen readers. */
  caption: string;
  columns: Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => Key;
  isHere?: (row: T) => boolean;
  className?: string;
  body?: Ref<HTMLTableSectionElement>;
}

export function Table<T>({ caption, columns, rows, keyOf, isHere, className = '', body }: Props<T>) {
  return (
    <table className={`rows ${className}`}>
      <caption className="unseen">{caption}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.title} scope="col" className={column.number === true ? 'number' : undefined}>
              {column.bare === true ? <span className="unseen">{column.title}</span> : column.title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody ref={body}>
        {rows.map((row) => (
          <tr key={keyOf(row)} className={isHere?.(row) === true ? 'here' : undefined}>
            {columns.map((column) => (
              <td key={column.title} className={classOf(column)}>
                {column.cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function classOf<T>({ number, className }: Column<T>): string | undefined {
  return [number === true ? 'number' : '', className ?? ''].filter(Boolean).join(' ') || undefined;
}
