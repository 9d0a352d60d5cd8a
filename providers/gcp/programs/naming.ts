import { type ResourceTransformation, runtime } from '@pulumi/pulumi';
import type { Program } from '../../pulumi/program.ts';

/**
 * Property with the physical name where it is not `name`; undefined for types without one: a grant is identified by its
 * content.
 */
const NAMED_BY: Readonly<Record<string, string | undefined>> = {
  'gcp:serviceaccount/account:Account': 'accountId',
  'gcp:projects/iAMMember:IAMMember': undefined,
  'gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember': undefined,
};

/**
 * Fails for a resource without a physical name. Pulumi would assign a random one: a run repeated after a crash would
 * create a second resource instead of failing with "already exists", and the first could not be found.
 */
const requireName: ResourceTransformation = ({ type, name, props }) => {
  if (!type.startsWith('gcp:') || (type in NAMED_BY && NAMED_BY[type] === undefined)) return undefined;
  const property = NAMED_BY[type] ?? 'name';
  if (props[property] === undefined)
    throw new Error(`${type} ${name} has no ${property}: every resource needs a fixed one`);
  return undefined;
};

/** The program, with a physical name required for every resource. */
export const named =
  <Inputs>(program: Program<Inputs>): Program<Inputs> =>
  (inputs) => {
    runtime.registerStackTransformation(requireName);
    return program(inputs);
  };
