import { type ResourceTransformation, runtime } from '@pulumi/pulumi';
import type { Program } from '../../pulumi/program.ts';

/** The property with the physical name, where it is not `name`; undefined for what has none: a grant is what it grants. */
const NAMED_BY: Readonly<Record<string, string | undefined>> = {
  'gcp:serviceaccount/account:Account': 'accountId',
  'gcp:projects/iAMMember:IAMMember': undefined,
  'gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember': undefined,
};

/**
 * Fails on a resource without a physical name. Pulumi would give it a random one: a run that is repeated after a crash then makes it a
 * second time instead of meeting "already exists", and nothing could find the first one.
 */
const requireName: ResourceTransformation = ({ type, name, props }) => {
  if (!type.startsWith('gcp:') || (type in NAMED_BY && NAMED_BY[type] === undefined)) return undefined;
  const property = NAMED_BY[type] ?? 'name';
  if (props[property] === undefined)
    throw new Error(`${type} ${name} has no ${property}: every resource needs a fixed one`);
  return undefined;
};

/** The program, in which every resource must have a physical name. */
export const named =
  <Inputs>(program: Program<Inputs>): Program<Inputs> =>
  (inputs) => {
    runtime.registerStackTransformation(requireName);
    return program(inputs);
  };
