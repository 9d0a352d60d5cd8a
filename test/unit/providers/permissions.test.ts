import { beforeAll, describe, expect, it } from 'vitest';
import { programs as awsPrograms } from '../../../providers/aws/programs.ts';
import { programs as azurePrograms } from '../../../providers/azure/programs.ts';
import { programs as googlePrograms } from '../../../providers/gcp/programs.ts';
import type { Layer, Programs } from '../../../providers/pulumi/program.ts';
import { type CloudName, shortType } from '../../kit/cloud/model.ts';
import { DOCUMENTED, NEEDS } from '../../kit/cloud/needs/index.ts';
import { type Answers, graphOf } from '../../kit/pulumi-graph.ts';
import * as aws from './aws/fixtures.ts';
import * as azure from './azure/fixtures.ts';
import * as google from './gcp/fixtures.ts';

const reached = { host: '203.0.113.9', port: 6443, extra: { securityGroup: 'wall', targetGroup: 'targets' } };
const zones = aws.clusterInputs().zones;
const balanced = { ...aws.clusterInputs().network, extra: { publicSubnets: 'subnet-x' } };
const awsMachine = { ...aws.cloudPool(), image: 'ami-1', rootDevice: '/dev/sda1', userData: '#cloud-config\n' };
const awsBase = { owner: aws.owner, region: 'eu-central-1', zones, network: balanced };

interface Cloud {
  readonly programs: Programs;
  readonly answers: Answers;
  /** Inputs of each layer. */
  readonly layers: Readonly<Record<string, object>>;
}

const CLOUDS: Readonly<Record<CloudName, Cloud>> = {
  aws: {
    programs: awsPrograms,
    answers: aws.answers,
    layers: {
      network: aws.networkInputs({ region: 'us-east-1', zones: ['us-east-1a', 'us-east-1b', 'us-east-1c'] }),
      cluster: aws.clusterInputs(),
      machines: { ...awsBase, pools: [awsMachine], kubeletClients: [] },
      endpoint: { ...awsBase, port: 6443 },
      'control-plane': { ...awsBase, endpoint: reached, pool: { ...awsMachine, holdsKeys: false } },
    },
  },
  gcp: {
    programs: googlePrograms,
    answers: google.answers,
    layers: {
      network: google.networkInputs,
      cluster: google.clusterInputs(),
      machines: google.machinesInputs(),
      endpoint: { ...google.machinesInputs(), port: 6443 },
      'control-plane': {
        ...google.machinesInputs(),
        endpoint: { ...reached, extra: { address: 'address', serviceAccount: 'machines@demo.iam' } },
        pool: { ...google.machinePool({ desired: 3, maximum: 3 }), holdsKeys: false },
      },
    },
  },
  'azure-native': {
    programs: azurePrograms,
    answers: azure.answers,
    layers: {
      network: azure.networkInputs,
      cluster: azure.clusterInputs(),
      machines: azure.machinesInputs(),
      endpoint: { ...azure.machinesInputs(), port: 6443 },
      'control-plane': {
        ...azure.machinesInputs(),
        endpoint: { ...reached, extra: { securityGroup: 'wall', backendPool: 'pool' } },
        pool: { ...azure.machinePool({ desired: 3, maximum: 3 }), holdsKeys: true },
      },
    },
  },
};

const LAYERS = { managed: ['network', 'cluster'], onMachines: ['network', 'machines', 'endpoint', 'control-plane'] };

/** Types and look-ups of each layer, as its program asks for them. */
async function typesOf({ programs, answers, layers }: Cloud): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  for (const [layer, inputs] of Object.entries(layers)) {
    const asked: string[] = [];
    const call: Answers['call'] = (token, about) => {
      asked.push(shortType(token));
      return answers.call?.(token, about) ?? {};
    };
    const { resources } = await graphOf(programs[layer as Layer]!, inputs, { ...answers, call });
    found[layer] = [...new Set([...resources.map(({ type }) => shortType(type)), ...asked])];
  }
  return found;
}

describe.each(Object.entries(CLOUDS))('%s', (name, cloud) => {
  const cloudName = name as CloudName;
  let types: Record<string, string[]>;
  beforeAll(async () => {
    types = await typesOf(cloud);
  });

  it.each(['managed', 'onMachines'] as const)('lists each permission that its programs need: %s', (mode) => {
    const made = LAYERS[mode].flatMap((layer) => types[layer]!);
    const unknown = made.filter((type) => !NEEDS[cloudName][type]);
    expect(unknown, 'types of which the kit does not say what they need').toEqual([]);
    const needed = made.flatMap((type) => Object.values(NEEDS[cloudName][type]!).flat());
    const documented = DOCUMENTED[mode][cloudName]!;
    expect([...new Set(needed)].filter((permission) => !documented.includes(permission)).sort()).toEqual([]);
  });
});
