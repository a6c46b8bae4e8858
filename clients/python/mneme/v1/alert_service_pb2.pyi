import datetime

from buf.validate import validate_pb2 as _validate_pb2
from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mneme.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AlertCondition(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ALERT_CONDITION_UNSPECIFIED: _ClassVar[AlertCondition]
    ALERT_CONDITION_ERROR_RATE_EXCEEDS: _ClassVar[AlertCondition]
    ALERT_CONDITION_COST_EXCEEDS: _ClassVar[AlertCondition]
    ALERT_CONDITION_LATENCY_EXCEEDS: _ClassVar[AlertCondition]
    ALERT_CONDITION_EVENT_COUNT_EXCEEDS: _ClassVar[AlertCondition]
    ALERT_CONDITION_NO_EVENTS_FOR: _ClassVar[AlertCondition]
    ALERT_CONDITION_SESSION_FAILURES_EXCEED: _ClassVar[AlertCondition]
    ALERT_CONDITION_ERROR_PATTERN_EXCEEDS: _ClassVar[AlertCondition]
    ALERT_CONDITION_QUEUE_DEPTH_EXCEEDS: _ClassVar[AlertCondition]
    ALERT_CONDITION_TREND_EXCEEDS: _ClassVar[AlertCondition]

class AlertTrend(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ALERT_TREND_UNSPECIFIED: _ClassVar[AlertTrend]
    ALERT_TREND_SUCCESS_RATE: _ClassVar[AlertTrend]
    ALERT_TREND_LATENCY: _ClassVar[AlertTrend]
    ALERT_TREND_LATENCY_P95: _ClassVar[AlertTrend]
    ALERT_TREND_ERROR_RATE: _ClassVar[AlertTrend]

class AlertState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ALERT_STATE_UNSPECIFIED: _ClassVar[AlertState]
    ALERT_STATE_OK: _ClassVar[AlertState]
    ALERT_STATE_TRIGGERED: _ClassVar[AlertState]

class AlertResolution(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ALERT_RESOLUTION_UNSPECIFIED: _ClassVar[AlertResolution]
    ALERT_RESOLUTION_RECOVERED: _ClassVar[AlertResolution]
    ALERT_RESOLUTION_DISABLED: _ClassVar[AlertResolution]
    ALERT_RESOLUTION_DELETED: _ClassVar[AlertResolution]

class DeliveryState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DELIVERY_STATE_UNSPECIFIED: _ClassVar[DeliveryState]
    DELIVERY_STATE_WAITING: _ClassVar[DeliveryState]
    DELIVERY_STATE_DELIVERED: _ClassVar[DeliveryState]
    DELIVERY_STATE_FAILED: _ClassVar[DeliveryState]
ALERT_CONDITION_UNSPECIFIED: AlertCondition
ALERT_CONDITION_ERROR_RATE_EXCEEDS: AlertCondition
ALERT_CONDITION_COST_EXCEEDS: AlertCondition
ALERT_CONDITION_LATENCY_EXCEEDS: AlertCondition
ALERT_CONDITION_EVENT_COUNT_EXCEEDS: AlertCondition
ALERT_CONDITION_NO_EVENTS_FOR: AlertCondition
ALERT_CONDITION_SESSION_FAILURES_EXCEED: AlertCondition
ALERT_CONDITION_ERROR_PATTERN_EXCEEDS: AlertCondition
ALERT_CONDITION_QUEUE_DEPTH_EXCEEDS: AlertCondition
ALERT_CONDITION_TREND_EXCEEDS: AlertCondition
ALERT_TREND_UNSPECIFIED: AlertTrend
ALERT_TREND_SUCCESS_RATE: AlertTrend
ALERT_TREND_LATENCY: AlertTrend
ALERT_TREND_LATENCY_P95: AlertTrend
ALERT_TREND_ERROR_RATE: AlertTrend
ALERT_STATE_UNSPECIFIED: AlertState
ALERT_STATE_OK: AlertState
ALERT_STATE_TRIGGERED: AlertState
ALERT_RESOLUTION_UNSPECIFIED: AlertResolution
ALERT_RESOLUTION_RECOVERED: AlertResolution
ALERT_RESOLUTION_DISABLED: AlertResolution
ALERT_RESOLUTION_DELETED: AlertResolution
DELIVERY_STATE_UNSPECIFIED: DeliveryState
DELIVERY_STATE_WAITING: DeliveryState
DELIVERY_STATE_DELIVERED: DeliveryState
DELIVERY_STATE_FAILED: DeliveryState

class AlertScope(_message.Message):
    __slots__ = ("agent_id", "project", "tags")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    project: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, agent_id: _Optional[str] = ..., project: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ...) -> None: ...

class AlertRule(_message.Message):
    __slots__ = ("id", "name", "enabled", "condition", "threshold", "resolve_threshold", "min_events", "window_minutes", "scope", "notify_channels", "pattern", "trend", "state", "last_triggered_at", "created_at", "updated_at", "notify_key_id", "notify_held_reason", "etag")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    RESOLVE_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    MIN_EVENTS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_MINUTES_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    NOTIFY_CHANNELS_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    TREND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    LAST_TRIGGERED_AT_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    NOTIFY_KEY_ID_FIELD_NUMBER: _ClassVar[int]
    NOTIFY_HELD_REASON_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    enabled: bool
    condition: AlertCondition
    threshold: float
    resolve_threshold: float
    min_events: int
    window_minutes: int
    scope: AlertScope
    notify_channels: _containers.RepeatedScalarFieldContainer[str]
    pattern: str
    trend: AlertTrend
    state: AlertState
    last_triggered_at: _timestamp_pb2.Timestamp
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    notify_key_id: str
    notify_held_reason: str
    etag: str
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., enabled: _Optional[bool] = ..., condition: _Optional[_Union[AlertCondition, str]] = ..., threshold: _Optional[float] = ..., resolve_threshold: _Optional[float] = ..., min_events: _Optional[int] = ..., window_minutes: _Optional[int] = ..., scope: _Optional[_Union[AlertScope, _Mapping]] = ..., notify_channels: _Optional[_Iterable[str]] = ..., pattern: _Optional[str] = ..., trend: _Optional[_Union[AlertTrend, str]] = ..., state: _Optional[_Union[AlertState, str]] = ..., last_triggered_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., notify_key_id: _Optional[str] = ..., notify_held_reason: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class AlertDelivery(_message.Message):
    __slots__ = ("id", "channel", "type", "state", "attempts", "error", "next_attempt_at", "delivered_at")
    ID_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    NEXT_ATTEMPT_AT_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_AT_FIELD_NUMBER: _ClassVar[int]
    id: str
    channel: str
    type: str
    state: DeliveryState
    attempts: int
    error: str
    next_attempt_at: _timestamp_pb2.Timestamp
    delivered_at: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., channel: _Optional[str] = ..., type: _Optional[str] = ..., state: _Optional[_Union[DeliveryState, str]] = ..., attempts: _Optional[int] = ..., error: _Optional[str] = ..., next_attempt_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., delivered_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class AlertHistoryEntry(_message.Message):
    __slots__ = ("id", "rule_id", "rule_name", "condition", "triggered_at", "resolved_at", "current_value", "resolved_value", "threshold", "message", "resolution", "deliveries")
    ID_FIELD_NUMBER: _ClassVar[int]
    RULE_ID_FIELD_NUMBER: _ClassVar[int]
    RULE_NAME_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    TRIGGERED_AT_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_AT_FIELD_NUMBER: _ClassVar[int]
    CURRENT_VALUE_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_VALUE_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RESOLUTION_FIELD_NUMBER: _ClassVar[int]
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    id: str
    rule_id: str
    rule_name: str
    condition: AlertCondition
    triggered_at: _timestamp_pb2.Timestamp
    resolved_at: _timestamp_pb2.Timestamp
    current_value: float
    resolved_value: float
    threshold: float
    message: str
    resolution: AlertResolution
    deliveries: _containers.RepeatedCompositeFieldContainer[AlertDelivery]
    def __init__(self, id: _Optional[str] = ..., rule_id: _Optional[str] = ..., rule_name: _Optional[str] = ..., condition: _Optional[_Union[AlertCondition, str]] = ..., triggered_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., resolved_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., current_value: _Optional[float] = ..., resolved_value: _Optional[float] = ..., threshold: _Optional[float] = ..., message: _Optional[str] = ..., resolution: _Optional[_Union[AlertResolution, str]] = ..., deliveries: _Optional[_Iterable[_Union[AlertDelivery, _Mapping]]] = ...) -> None: ...

class CreateAlertRuleRequest(_message.Message):
    __slots__ = ("name", "enabled", "condition", "threshold", "resolve_threshold", "min_events", "window_minutes", "scope", "notify_channels", "pattern", "trend", "rule_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    RESOLVE_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    MIN_EVENTS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_MINUTES_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    NOTIFY_CHANNELS_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    TREND_FIELD_NUMBER: _ClassVar[int]
    RULE_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    enabled: bool
    condition: AlertCondition
    threshold: float
    resolve_threshold: float
    min_events: int
    window_minutes: int
    scope: AlertScope
    notify_channels: _containers.RepeatedScalarFieldContainer[str]
    pattern: str
    trend: AlertTrend
    rule_id: str
    def __init__(self, name: _Optional[str] = ..., enabled: _Optional[bool] = ..., condition: _Optional[_Union[AlertCondition, str]] = ..., threshold: _Optional[float] = ..., resolve_threshold: _Optional[float] = ..., min_events: _Optional[int] = ..., window_minutes: _Optional[int] = ..., scope: _Optional[_Union[AlertScope, _Mapping]] = ..., notify_channels: _Optional[_Iterable[str]] = ..., pattern: _Optional[str] = ..., trend: _Optional[_Union[AlertTrend, str]] = ..., rule_id: _Optional[str] = ...) -> None: ...

class CreateAlertRuleResponse(_message.Message):
    __slots__ = ("rule",)
    RULE_FIELD_NUMBER: _ClassVar[int]
    rule: AlertRule
    def __init__(self, rule: _Optional[_Union[AlertRule, _Mapping]] = ...) -> None: ...

class GetAlertRuleRequest(_message.Message):
    __slots__ = ("rule_id",)
    RULE_ID_FIELD_NUMBER: _ClassVar[int]
    rule_id: str
    def __init__(self, rule_id: _Optional[str] = ...) -> None: ...

class GetAlertRuleResponse(_message.Message):
    __slots__ = ("rule",)
    RULE_FIELD_NUMBER: _ClassVar[int]
    rule: AlertRule
    def __init__(self, rule: _Optional[_Union[AlertRule, _Mapping]] = ...) -> None: ...

class ListAlertRulesRequest(_message.Message):
    __slots__ = ("state", "page_size", "page_token")
    STATE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    state: AlertState
    page_size: int
    page_token: str
    def __init__(self, state: _Optional[_Union[AlertState, str]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListAlertRulesResponse(_message.Message):
    __slots__ = ("rules", "next_page_token", "total_size")
    RULES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    rules: _containers.RepeatedCompositeFieldContainer[AlertRule]
    next_page_token: str
    total_size: int
    def __init__(self, rules: _Optional[_Iterable[_Union[AlertRule, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_size: _Optional[int] = ...) -> None: ...

class UpdateAlertRuleRequest(_message.Message):
    __slots__ = ("rule", "update_mask")
    RULE_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    rule: AlertRule
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, rule: _Optional[_Union[AlertRule, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class UpdateAlertRuleResponse(_message.Message):
    __slots__ = ("rule",)
    RULE_FIELD_NUMBER: _ClassVar[int]
    rule: AlertRule
    def __init__(self, rule: _Optional[_Union[AlertRule, _Mapping]] = ...) -> None: ...

class DeleteAlertRuleRequest(_message.Message):
    __slots__ = ("rule_id", "etag")
    RULE_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    rule_id: str
    etag: str
    def __init__(self, rule_id: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class DeleteAlertRuleResponse(_message.Message):
    __slots__ = ("rule",)
    RULE_FIELD_NUMBER: _ClassVar[int]
    rule: AlertRule
    def __init__(self, rule: _Optional[_Union[AlertRule, _Mapping]] = ...) -> None: ...

class ListAlertHistoryRequest(_message.Message):
    __slots__ = ("rule_id", "state", "start_time", "end_time", "page_size", "page_token")
    RULE_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    rule_id: str
    state: AlertState
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    page_size: int
    page_token: str
    def __init__(self, rule_id: _Optional[str] = ..., state: _Optional[_Union[AlertState, str]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListAlertHistoryResponse(_message.Message):
    __slots__ = ("entries", "next_page_token", "total_size")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[AlertHistoryEntry]
    next_page_token: str
    total_size: int
    def __init__(self, entries: _Optional[_Iterable[_Union[AlertHistoryEntry, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_size: _Optional[int] = ...) -> None: ...

class TestAlertRuleRequest(_message.Message):
    __slots__ = ("rule_id",)
    RULE_ID_FIELD_NUMBER: _ClassVar[int]
    rule_id: str
    def __init__(self, rule_id: _Optional[str] = ...) -> None: ...

class TestAlertRuleResponse(_message.Message):
    __slots__ = ("deliveries",)
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    deliveries: _containers.RepeatedCompositeFieldContainer[AlertDelivery]
    def __init__(self, deliveries: _Optional[_Iterable[_Union[AlertDelivery, _Mapping]]] = ...) -> None: ...

class TryAlertRuleRequest(_message.Message):
    __slots__ = ("rule", "rule_id", "start_time", "end_time")
    RULE_FIELD_NUMBER: _ClassVar[int]
    RULE_ID_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    rule: AlertRule
    rule_id: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    def __init__(self, rule: _Optional[_Union[AlertRule, _Mapping]] = ..., rule_id: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class TriedAlert(_message.Message):
    __slots__ = ("triggered_at", "resolved_at", "current_value", "highest_value")
    TRIGGERED_AT_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_AT_FIELD_NUMBER: _ClassVar[int]
    CURRENT_VALUE_FIELD_NUMBER: _ClassVar[int]
    HIGHEST_VALUE_FIELD_NUMBER: _ClassVar[int]
    triggered_at: _timestamp_pb2.Timestamp
    resolved_at: _timestamp_pb2.Timestamp
    current_value: float
    highest_value: float
    def __init__(self, triggered_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., resolved_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., current_value: _Optional[float] = ..., highest_value: _Optional[float] = ...) -> None: ...

class TriedPoint(_message.Message):
    __slots__ = ("time", "value")
    TIME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    time: _timestamp_pb2.Timestamp
    value: float
    def __init__(self, time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., value: _Optional[float] = ...) -> None: ...

class TryAlertRuleResponse(_message.Message):
    __slots__ = ("alerts", "alert_count", "summary", "points", "current_value", "highest_value", "searched_count", "truncated", "start_time", "end_time")
    ALERTS_FIELD_NUMBER: _ClassVar[int]
    ALERT_COUNT_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    CURRENT_VALUE_FIELD_NUMBER: _ClassVar[int]
    HIGHEST_VALUE_FIELD_NUMBER: _ClassVar[int]
    SEARCHED_COUNT_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    alerts: _containers.RepeatedCompositeFieldContainer[TriedAlert]
    alert_count: int
    summary: str
    points: _containers.RepeatedCompositeFieldContainer[TriedPoint]
    current_value: float
    highest_value: float
    searched_count: int
    truncated: bool
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    def __init__(self, alerts: _Optional[_Iterable[_Union[TriedAlert, _Mapping]]] = ..., alert_count: _Optional[int] = ..., summary: _Optional[str] = ..., points: _Optional[_Iterable[_Union[TriedPoint, _Mapping]]] = ..., current_value: _Optional[float] = ..., highest_value: _Optional[float] = ..., searched_count: _Optional[int] = ..., truncated: _Optional[bool] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class GetWebhookSecretRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetWebhookSecretResponse(_message.Message):
    __slots__ = ("secret", "created_at")
    SECRET_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    secret: str
    created_at: _timestamp_pb2.Timestamp
    def __init__(self, secret: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RotateWebhookSecretRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RotateWebhookSecretResponse(_message.Message):
    __slots__ = ("secret", "old_until")
    SECRET_FIELD_NUMBER: _ClassVar[int]
    OLD_UNTIL_FIELD_NUMBER: _ClassVar[int]
    secret: str
    old_until: _timestamp_pb2.Timestamp
    def __init__(self, secret: _Optional[str] = ..., old_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
