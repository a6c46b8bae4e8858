"""Alerts: rules that watch what is recorded, and tell somebody."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from mneme.v1 import alert_service_pb2

from mneme_server.capability import Capability, Gauge, Host, Parts
from mneme_server.edge.grpc.service import Service
from mneme_server.engine.settings import ServerSettings
from mneme_server.engine.store.connections import Database
from mneme_server.features.admin.keys import KeyWatch
from mneme_server.features.admin.ports import ServerInfo
from mneme_server.features.admin.tenants import Tenants
from mneme_server.features.alerts.channel_test import ChannelTest
from mneme_server.features.alerts.channels import AllowedChannels, networks_of, recipients_of
from mneme_server.features.alerts.deliveries import DELIVER_JOB, DeliveryWorker
from mneme_server.features.alerts.due import DueWorker
from mneme_server.features.alerts.evaluation import WATCH_JOB, AlertWorker
from mneme_server.features.alerts.mail import Mailer
from mneme_server.features.alerts.measurement import Trends
from mneme_server.features.alerts.metrics import AlertCounts
from mneme_server.features.alerts.rules import AlertRules
from mneme_server.features.alerts.sender import (
    ChannelKeys,
    ChannelSender,
    KeyedSender,
    SenderThreads,
)
from mneme_server.features.alerts.service import AlertServicer
from mneme_server.features.alerts.settings import AlertSettings
from mneme_server.features.alerts.store.forgetting import FORGETS
from mneme_server.features.alerts.store.schedules import SqlDue
from mneme_server.features.alerts.trial import RuleTrial
from mneme_server.features.alerts.webhook import WebhookSecrets
from mneme_server.features.events.recording import RecordEvents
from mneme_server.features.reflect.analyses import Analyses


def _build(host: Host) -> Parts:
    runtime, tenants = host.runtime, host.tenants
    settings = host.settings(AlertSettings)
    due, senders = SqlDue(host.get(Database)), SenderThreads()
    host.get(Tenants).also_delete(due.drop)
    send, secrets = _send(settings, host.get(ServerInfo)), WebhookSecrets(tenants)
    watch, asked = host.get(KeyWatch), host.settings(ServerSettings).auth == "required"
    keys, sending = ChannelKeys(watch, asked), KeyedSender(send, senders, asked=asked)
    watch.add(sending)
    standing = AlertCounts()
    deliveries = DeliveryWorker(
        tenants.open,
        due,
        keys=keys,
        sending=sending,
        record=host.get(RecordEvents),
        secrets=secrets,
        standing=standing,
    )
    worker = AlertWorker(tenants.open, due, Trends(host.get(Analyses)), deliveries.wake, standing)
    for one in (worker, deliveries):
        runtime.listen(one)
        runtime.before_closing(one.closing)
    rules = AlertRules(tenants, send.allowed, worker.changed)
    servicer = AlertServicer(
        rules=rules,
        keys=keys,
        secrets=secrets,
        test=ChannelTest(rules, secrets, keys, sending),
        trial=RuleTrial(tenants),
    )
    descriptor = alert_service_pb2.DESCRIPTOR.services_by_name["AlertService"]
    return Parts(
        services=[Service(descriptor, servicer)],
        jobs={WATCH_JOB: worker, DELIVER_JOB: deliveries},
        gauges=[Gauge(name, meaning, value) for name, meaning, value in standing.gauges()],
        resume=partial(_resume, worker, deliveries),
        close=partial(_close, deliveries, senders),
    )


def _resume(*workers: DueWorker) -> None:
    for worker in workers:
        worker.resume()


def _close(deliveries: DeliveryWorker, senders: SenderThreads) -> None:
    deliveries.begin_stop()
    senders.close()


def _send(settings: AlertSettings, info: ServerInfo) -> ChannelSender:
    allowed = AllowedChannels(
        networks_of(settings.alert_networks),
        recipients_of(settings.alert_recipients),
        sends_mail=bool(settings.smtp_host),
    )
    password = settings.smtp_password
    mailer = Mailer(
        settings.smtp_host,
        settings.smtp_port,
        settings.smtp_security,
        settings.smtp_username,
        password.get_secret_value() if password else "",
        settings.smtp_from,
    )
    return ChannelSender(allowed, mailer, info.version)


CAPABILITY = Capability(
    name="alerts",
    build=_build,
    migrations=Path(__file__).parent / "migrations",
    catalog_migrations=Path(__file__).parent / "catalog_migrations",
    forgets=FORGETS,
)
