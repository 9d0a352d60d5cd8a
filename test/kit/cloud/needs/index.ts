import { PERMISSIONS as AWS } from '../../../../providers/aws/permissions.ts';
import { PERMISSIONS as AZURE } from '../../../../providers/azure/account.ts';
import { PERMISSIONS as GOOGLE } from '../../../../providers/gcp/account.ts';
import type { Attempt, CloudName } from '../model.ts';
import type { Store } from '../store.ts';
import { AWS_NEEDS } from './aws.ts';
import { AZURE_NEEDS } from './azure.ts';
import { GOOGLE_NEEDS } from './google.ts';
import type { Needs } from './needs.ts';

export const NEEDS: Record<CloudName, Needs> = { aws: AWS_NEEDS, gcp: GOOGLE_NEEDS, 'azure-native': AZURE_NEEDS };

const FILE = 'granted.json';
/** What an account may do, by cloud. */
export type Granted = Partial<Record<CloudName, readonly string[]>>;

/** The permissions that Coppice documents and checks, by what runs the control plane. */
export const DOCUMENTED: Record<'managed' | 'onMachines' | 'all', Granted> = {
  managed: { aws: AWS.managed, gcp: GOOGLE.managed, 'azure-native': AZURE.managed },
  onMachines: { aws: AWS.onMachines, gcp: GOOGLE.onMachines, 'azure-native': AZURE.onMachines },
  all: {
    aws: [...AWS.managed, ...AWS.onMachines],
    gcp: [...GOOGLE.managed, ...GOOGLE.onMachines],
    'azure-native': [...AZURE.managed, ...AZURE.onMachines],
  },
};

/** From now on accounts have these permissions. */
export const grant = (store: Store, granted: Granted): void => store.writeJSON(granted, FILE);

/** The first of these permissions that accounts do not have; undefined: they have all. */
export function lackedOf(store: Store, cloud: CloudName, needed: readonly string[]): string | undefined {
  const granted = store.readJSON<Granted>(FILE)?.[cloud];
  return granted && needed.find((permission) => !granted.includes(permission));
}

/** Permissions that an operation of a plugin needs; none of a type that Coppice does not make. */
export const neededBy = (
  cloud: CloudName,
  { type, operation }: Pick<Attempt, 'type' | 'operation'>,
): readonly string[] => NEEDS[cloud][type]?.[operation] ?? [];
