import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import {
  AttachUserPolicyCommand,
  CreateAccessKeyCommand,
  CreatePolicyCommand,
  CreateUserCommand,
  IAMClient,
} from '@aws-sdk/client-iam';
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts';
import type { CloudAccount } from '../../../providers/cloud.ts';

export const REGION = 'eu-central-1';

/**
 * moto's server, which ends when its standard input ends: with the process that started it, however that ends.
 * It differs from moto 5.2.5 where that differs from AWS:
 * - moto takes the query of a GET for its body when it computes the signature, unless x-amz-content-sha256 is there. AWS signs the bytes of the
 *   body, and asks for that header in S3 alone (AWS IAM User Guide, "Create a signed AWS API request").
 * - moto applies a statement of a bucket's policy whatever its conditions are (moto/s3/models.py: "Conditions are not taken into account"). Ours
 *   denies requests without TLS, and moto is asked without.
 * - moto refuses to make a record that it once made as long as there is any record after it in the zone, and a record that the same batch
 *   deletes. AWS allows both (Route 53 API Reference, ChangeResourceRecordSets, "Change Batches and Transactional Changes"). Here the changes of
 *   a batch are made one by one, and one is refused if there is a record of its name and type. As in moto, what was made before it stays.
 */
const PROGRAM = `
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
from moto.iam.access_control import IAMRequestBase, PermissionResult
from moto.route53.exceptions import ResourceRecordAlreadyExists
from moto.route53.models import ChangeList, Route53Backend
from moto.s3.models import FakeBucket
from moto.server import main
signed = IAMRequestBase._create_aws_request
def create(self):
    if self._method == 'GET':
        self._data = {}
    return signed(self)
IAMRequestBase._create_aws_request = create
FakeBucket.get_permission = lambda self, action, resource: PermissionResult.NEUTRAL
change = Route53Backend.change_resource_record_sets
def one_by_one(self, zoneid, change_list):
    for each in change_list:
        wanted = each['ResourceRecordSet']
        name = wanted['Name'].rstrip('.') + '.'
        there = [(one.name, one.type) for one in self.get_hosted_zone(zoneid).rrsets]
        if each['Action'] == 'CREATE' and (name, wanted['Type']) in there:
            raise ResourceRecordAlreadyExists(name=name, _type=wanted['Type'])
        change(self, zoneid, [each])
ChangeList.__contains__ = lambda self, change: False
Route53Backend.change_resource_record_sets = one_by_one
main(sys.argv[1:])
`;

/** A user of an account of moto. */
export interface MotoUser {
  account: CloudAccount & { credentials: { accessKeyID: string; secretAccessKey: string } };
  /** What clients of AWS' own take. */
  options: {
    region: string;
    endpoint: string;
    credentials: { accessKeyId: string; secretAccessKey: string; sessionToken?: string };
    maxAttempts: number;
  };
  name: string;
}

/** AWS as moto plays it, in a process of its own. */
export interface Moto {
  /** All services are at one address. */
  endpoint: string;
  /** Makes a user with a key, who may do these actions. Before `enforce` only. @param id twelve digits */
  user(id: string, name: string, actions: readonly string[]): Promise<MotoUser>;
  /** From now on each request needs a right signature of a key that there is, and a policy that allows it. Before, moto lets all in. */
  enforce(): Promise<void>;
  close(): Promise<void>;
}

/** @param folder what installMoto found */
export async function startMoto(folder: string): Promise<Moto> {
  const child = spawn('python3', ['-s', '-c', PROGRAM, '-H', '127.0.0.1', '-p', '0'], {
    env: { PATH: process.env.PATH, PYTHONPATH: folder, MOTO_S3_ALLOW_CROSSACCOUNT_ACCESS: 'false' },
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  const ended = once(child, 'exit');
  const endpoint = await addressOf(child);
  const root = optionsOf(endpoint, { accessKeyId: 'AKIAROOTROOTROOTROOT', secretAccessKey: 'root' });
  return {
    endpoint,
    async user(id, name, actions) {
      // moto knows an account by who asks, and an account that has no user yet by a role in it.
      const command = new AssumeRoleCommand({ RoleArn: `arn:aws:iam::${id}:role/first`, RoleSessionName: 'first' });
      const { Credentials: first } = await new STSClient(root).send(command);
      const [accessKeyId, secretAccessKey] = [first!.AccessKeyId!, first!.SecretAccessKey!];
      const iam = new IAMClient(
        optionsOf(endpoint, { accessKeyId, secretAccessKey, sessionToken: first!.SessionToken! }),
      );
      await iam.send(new CreateUserCommand({ UserName: name }));
      const Statement = [{ Effect: 'Allow', Action: actions, Resource: '*' }];
      const PolicyDocument = JSON.stringify({ Version: '2012-10-17', Statement });
      const { Policy } = await iam.send(new CreatePolicyCommand({ PolicyName: name, PolicyDocument }));
      await iam.send(new AttachUserPolicyCommand({ UserName: name, PolicyArn: Policy!.Arn! }));
      const { AccessKey: key } = await iam.send(new CreateAccessKeyCommand({ UserName: name }));
      const credentials = { accessKeyID: key!.AccessKeyId!, secretAccessKey: key!.SecretAccessKey! };
      return {
        name,
        account: { id, credentials },
        options: optionsOf(endpoint, { accessKeyId: key!.AccessKeyId!, secretAccessKey: key!.SecretAccessKey! }),
      };
    },
    async enforce() {
      const answer = await fetch(`${endpoint}/moto-api/reset-auth`, { method: 'POST', body: '0' });
      if (!answer.ok) throw new Error(`moto does not enforce its policies: HTTP ${answer.status}`);
    },
    async close() {
      child.stdin.end();
      await ended;
    },
  };
}

async function addressOf({ stderr }: { stderr: Readable }): Promise<string> {
  const said: string[] = [];
  for await (const line of createInterface({ input: stderr })) {
    const found = /Running on (http:\S+)/.exec(line);
    if (found) return found[1]!;
    said.push(line);
  }
  throw new Error(`moto does not start: ${said.join('\n')}`);
}

const optionsOf = (endpoint: string, credentials: MotoUser['options']['credentials']): MotoUser['options'] => ({
  region: REGION,
  endpoint,
  credentials,
  maxAttempts: 1,
});
