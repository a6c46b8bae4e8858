"""The settings of alerts."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator

from mneme_server.features.alerts.channels import networks_of, recipients_of


class AlertSettings(BaseModel):
    """Whom alerts may tell, and how."""

    alert_networks: str = Field(
        "",
        description="networks that are not public but that webhooks may call, e.g. 10.1.0.0/16,"
        " separated by commas. Whoever may write alert rules can then call what is in them",
    )
    alert_recipients: str = Field(
        "",
        description="who may get alerts by e-mail: addresses (ops@example.com) or whole domains"
        " (@example.com), separated by commas. Empty: nobody",
    )
    smtp_host: str = Field(
        "", description="the server that takes the e-mails; empty: none are sent"
    )
    smtp_port: int = Field(
        0, ge=0, le=65535, description="its port; 0: 587, or 465 with tls, or 25 with none"
    )
    smtp_security: Literal["starttls", "tls", "none"] = Field(
        "starttls",
        description="how the connection is encrypted: by STARTTLS, from the start (tls), or not at"
        " all",
    )
    smtp_username: str = Field(
        "", description="the user name to sign in with; empty: do not sign in"
    )
    smtp_password: SecretStr | None = Field(None, description="the password")
    smtp_from: str = Field("", description="the sender's address; required if smtp_host is set")

    @field_validator("alert_networks")
    @classmethod
    def _are_networks(cls, value: str) -> str:
        networks_of(value)
        return value

    @field_validator("alert_recipients")
    @classmethod
    def _are_recipients(cls, value: str) -> str:
        recipients_of(value)
        return value

    @field_validator("smtp_username", "smtp_password")
    @classmethod
    def _can_be_sent(cls, value: str | SecretStr | None) -> str | SecretStr | None:
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        if text and not text.isascii():
            raise ValueError("it must be ASCII: mail servers are signed in to with nothing else")
        return value

    @model_validator(mode="after")
    def _has_a_sender(self) -> Self:
        if self.smtp_host and not self.smtp_from:
            raise ValueError("smtp_from must be set where smtp_host is")
        return self
