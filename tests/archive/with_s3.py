"""usage: with_s3.py PROGRAM [ARGUMENTS] - runs a program beside an S3 service in this process.

The program's environment has H5M_TEST_S3_ENDPOINT, H5M_TEST_S3_BUCKET and the keys of a user that
may do everything in that bucket. From then on the service checks the signature and the rights of
each call.
"""

import json
import logging
import os
import subprocess
import sys

import boto3
from moto.core import set_initial_no_auth_action_count
from moto.server import ThreadedMotoServer

BUCKET = "h5mirror-test"
RIGHTS = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "s3:*",
                   "Resource": [f"arn:aws:s3:::{BUCKET}", f"arn:aws:s3:::{BUCKET}/*"]}],
}


def set_up(endpoint):
    """Makes the bucket and its user, with calls that the service does not check yet. Returns the user's key."""
    root = {"endpoint_url": endpoint, "region_name": "us-east-1", "aws_access_key_id": "root",
            "aws_secret_access_key": "root"}
    boto3.client("s3", **root).create_bucket(Bucket=BUCKET)
    iam = boto3.client("iam", **root)
    iam.create_user(UserName="archivist")
    iam.put_user_policy(UserName="archivist", PolicyName="all", PolicyDocument=json.dumps(RIGHTS))
    return iam.create_access_key(UserName="archivist")["AccessKey"]


def main(command):
    logging.getLogger("werkzeug").setLevel(logging.ERROR)   # A line for each call.
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    try:
        key = set_up(endpoint)
        environment = os.environ | {
            "H5M_TEST_S3_ENDPOINT": endpoint,
            "H5M_TEST_S3_BUCKET": BUCKET,
            "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
        }
        checked = set_initial_no_auth_action_count(0)(subprocess.run)
        return checked(command, env=environment).returncode
    finally:
        server.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
