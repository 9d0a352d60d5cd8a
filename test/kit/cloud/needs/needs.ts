import type { Operation } from '../model.ts';

/** Permissions that an operation on a type needs, in the cloud's names; types as CloudResource has them, and tokens of look-ups. */
export type Needs = Readonly<Record<string, Partial<Record<Operation, readonly string[]>>>>;

/** Permissions by operation, with blanks between; an operation that is absent needs what a read does. */
export type Written = Partial<Record<'create' | 'read' | 'update' | 'delete', string>>;

/** Reads what is written short for a service of AWS: `CreateVpc` is `ec2:CreateVpc`. Each operation also reads, before or after. */
export const needsOf =
  (service: string) =>
  (written: Written): Record<'create' | 'read' | 'update' | 'delete', string[]> => {
    const named = (operation: keyof Written): string[] =>
      [...new Set(`${written[operation] ?? ''} ${written.read ?? ''}`.split(' '))]
        .filter((word) => word !== '')
        .map((word) => (word.includes(':') ? word : `${service}:${word}`));
    return { create: named('create'), read: named('read'), update: named('update'), delete: named('delete') };
  };
