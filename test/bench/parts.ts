import type { PartsTable } from './report.ts';

/** Values by part and column. */
export class Parts {
  readonly #rows = new Map<string, Record<string, number[]>>();

  add(part: string, column: string, value: number): void {
    const columns = this.#rows.get(part) ?? {};
    this.#rows.set(part, columns);
    columns[column] ??= [];
    columns[column].push(value);
  }

  /** Parts as they came; none: no table. */
  inOrder(title: string, unit: PartsTable['unit']): PartsTable[] {
    const rows = [...this.#rows].map(([part, columns]) => ({ part, columns }));
    return rows.length === 0 ? [] : [{ title, unit, rows }];
  }

  /** Parts with the largest values first. */
  table(title: string, unit: PartsTable['unit']): PartsTable[] {
    const largest = ({ columns }: PartsTable['rows'][number]) => Math.max(...Object.values(columns).flat());
    return this.inOrder(title, unit).map((table) => ({
      ...table,
      rows: table.rows.sort((a, b) => largest(b) - largest(a)),
    }));
  }
}
