terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.0"
    }
  }
}

provider "aws" {
  region                      = "us-east-1"
  access_key                  = "local"
  secret_key                  = "local"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_region_validation      = true
  skip_requesting_account_id  = true

  endpoints {
    applicationautoscaling = var.endpoint
    dynamodb               = var.endpoint
  }
}

variable "endpoint" {
  type    = string
  default = "http://127.0.0.1:8000"
}

resource "aws_dynamodb_table" "orders" {
  name         = "Orders"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "pk"
  range_key    = "sk"

  attribute {
    name = "pk"
    type = "S"
  }

  attribute {
    name = "sk"
    type = "S"
  }

  attribute {
    name = "state"
    type = "S"
  }

  global_secondary_index {
    name            = "by-state"
    hash_key        = "state"
    range_key       = "sk"
    projection_type = "ALL"
  }

  ttl {
    attribute_name = "expires"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }

  stream_enabled   = true
  stream_view_type = "NEW_AND_OLD_IMAGES"

  tags = {
    Team = "shop"
  }
}

resource "aws_dynamodb_table_item" "first" {
  table_name = aws_dynamodb_table.orders.name
  hash_key   = "pk"
  range_key  = "sk"
  item       = jsonencode({ pk = { S = "CUSTOMER#1" }, sk = { S = "ORDER#1" }, state = { S = "new" } })
}

resource "aws_dynamodb_table" "stock" {
  name           = "Stock"
  billing_mode   = "PROVISIONED"
  read_capacity  = 5
  write_capacity = 5
  hash_key       = "pk"

  attribute {
    name = "pk"
    type = "S"
  }

  lifecycle {
    # Auto scaling changes it.
    ignore_changes = [read_capacity]
  }
}

resource "aws_appautoscaling_target" "stock_reads" {
  service_namespace  = "dynamodb"
  resource_id        = "table/${aws_dynamodb_table.stock.name}"
  scalable_dimension = "dynamodb:table:ReadCapacityUnits"
  min_capacity       = 5
  max_capacity       = 100

  tags = {
    Team = "shop"
  }
}

resource "aws_appautoscaling_policy" "stock_reads" {
  name               = "DynamoDBReadCapacityUtilization:${aws_appautoscaling_target.stock_reads.resource_id}"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.stock_reads.service_namespace
  resource_id        = aws_appautoscaling_target.stock_reads.resource_id
  scalable_dimension = aws_appautoscaling_target.stock_reads.scalable_dimension

  target_tracking_scaling_policy_configuration {
    target_value       = 70
    scale_in_cooldown  = 60
    scale_out_cooldown = 30

    predefined_metric_specification {
      predefined_metric_type = "DynamoDBReadCapacityUtilization"
    }
  }
}
